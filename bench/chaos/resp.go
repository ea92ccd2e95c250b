//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// command is one command as a client sent it.
type command struct {
	name string // in capitals
	raw  []byte
}

// readCommand reads an array of bulk strings, which is how clients speak.
func readCommand(r *bufio.Reader) (c command, err error) {
	n, err := c.length(r, '*')
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = c.length(r, '$'); err != nil {
			break
		}
		begin := len(c.raw)
		c.raw = append(c.raw, make([]byte, size+2)...)
		if _, err = io.ReadFull(r, c.raw[begin:]); err == nil && i == 0 {
			c.name = strings.ToUpper(string(c.raw[begin : begin+size]))
		}
	}
	return c, err
}

// length reads a line like *3 or $12 and keeps it.
func (c *command) length(r *bufio.Reader, mark byte) (int, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	c.raw = append(c.raw, line...)
	if line[0] != mark {
		return 0, fmt.Errorf("chaos: a command begins with %q, not %q", line, mark)
	}
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}

// changes reports whether a command is one that does something to keys, and not to
// its connection.
func (c command) changes() bool {
	switch c.name {
	case "HELLO", "AUTH", "CLIENT", "PING", "SELECT", "INFO", "COMMAND", "CLUSTER", "ROLE", "SENTINEL", "READONLY",
		"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE",
		"REPLCONF", "PSYNC", "QUIT":
		return false
	}
	return true
}

// ask sends one command to a server and returns its answer as text: the harness needs
// no more of a client than that, and none that retries or waits on its own.
func ask(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write(encode(args...)); err != nil {
		return "", err
	}
	answer, err := readAnswer(bufio.NewReader(conn))
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return answer, nil
}

// encode writes a command as clients do.
func encode(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// readAnswer reads an answer of the second version of the protocol. The parts of an
// array come as lines.
func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	mark, rest := line[0], strings.TrimSpace(line[1:])
	switch mark {
	case '-':
		return "", errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		bulk := make([]byte, n+2)
		_, err = io.ReadFull(r, bulk)
		return string(bulk[:n]), err
	case '*':
		n, err := strconv.Atoi(rest)
		var parts []string
		for i := 0; i < n && err == nil; i++ {
			var part string
			part, err = readAnswer(r)
			parts = append(parts, part)
		}
		return strings.Join(parts, "\n"), err
	}
	return rest, nil
}
