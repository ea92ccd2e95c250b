package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ServerError is an answer that begins with a minus.
type ServerError string

// Error returns the answer without the minus.
func (e ServerError) Error() string { return string(e) }

// answerWithin bounds one command: a server that is frozen never answers.
const answerWithin = 20 * time.Second

// conn is a connection that asks one thing at a time.
type conn struct {
	net.Conn
	r *bufio.Reader
}

// do sends a command and returns its answer: a string, an int64, nil or a []any of
// them. An error that the server answered is a ServerError.
func (c *conn) do(args []string) (any, error) {
	defer time.AfterFunc(answerWithin, func() { _ = c.Close() }).Stop()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return nil, err
	}
	v, err := c.read()
	if e, ok := v.(ServerError); ok {
		return nil, e
	}
	return v, err
}

// read returns one value; errors that the server answered are values.
func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("redistest: an empty line from %v", c.RemoteAddr())
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ServerError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("redistest: %q from %v: %w", line, c.RemoteAddr(), err)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return string(b[:n]), err
	case kind == '*':
		return c.readAll(int(n))
	}
	return nil, fmt.Errorf("redistest: %q from %v", line, c.RemoteAddr())
}

func (c *conn) readAll(n int) (any, error) {
	all := make([]any, n)
	for i := range all {
		v, err := c.read()
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

// is reports whether the answer begins with a word.
func (e ServerError) is(word string) bool { return strings.HasPrefix(string(e), word+" ") }
