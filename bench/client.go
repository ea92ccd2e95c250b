package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// clientCommand starts this program as the client of the wire section.
const clientCommand = "client"

// client is a process that asks HTTP servers. It gets one line for each task,
// "address requests status", and answers one: "ok", or what went wrong.
type client struct {
	cmd   *exec.Cmd
	tasks io.WriteCloser
	words *bufio.Reader
}

func startClient() (*client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, clientCommand)
	cmd.Stderr = os.Stderr
	tasks, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	words, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &client{cmd, tasks, bufio.NewReader(words)}, cmd.Start()
}

// ask sends so many requests to a server and returns when all were answered with
// the status.
func (c *client) ask(addr string, requests, status int) error {
	if _, err := fmt.Fprintln(c.tasks, addr, requests, status); err != nil {
		return err
	}
	word, err := c.words.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the client's answer: %w", err)
	}
	if word != "ok\n" {
		return fmt.Errorf("the client: %s", word)
	}
	return nil
}

func (c *client) close() error { return errors.Join(c.tasks.Close(), c.cmd.Wait()) }

// serveClient is the client's main: it does the tasks until there are no more.
func serveClient(tasks io.Reader, words io.Writer) error {
	pools := map[string][]*wire{}
	lines := bufio.NewScanner(tasks)
	for lines.Scan() {
		var addr string
		var requests, status int
		if _, err := fmt.Sscan(lines.Text(), &addr, &requests, &status); err != nil {
			return fmt.Errorf("task %q: %w", lines.Text(), err)
		}
		word := "ok"
		if err := askAll(pools, addr, requests, status); err != nil {
			word = strconv.Quote(err.Error())
		}
		if _, err := fmt.Fprintln(words, word); err != nil {
			return err
		}
	}
	return lines.Err()
}

// askAll shares the requests among the connections to an address, which it opens
// once and keeps.
func askAll(pools map[string][]*wire, addr string, requests, status int) error {
	for len(pools[addr]) < wireConns {
		conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			return err
		}
		pools[addr] = append(pools[addr], newWire(conn))
	}
	errs := make([]error, wireConns)
	var wg sync.WaitGroup
	for i, w := range pools[addr] {
		share := requests / wireConns
		if i < requests%wireConns {
			share++
		}
		wg.Go(func() { errs[i] = w.ask(share, status) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// wire is one connection that stays open. It knows as much of HTTP as its own
// servers speak: a status line, headers, a Content-Length.
type wire struct {
	conn    net.Conn
	answers *bufio.Reader
}

var (
	getRequest    = []byte("GET /reports/7 HTTP/1.1\r\nHost: bench\r\n\r\n")
	contentLength = []byte("Content-Length: ")
)

func newWire(conn net.Conn) *wire { return &wire{conn, bufio.NewReader(conn)} }

func (w *wire) ask(requests, status int) error {
	for range requests {
		if _, err := w.conn.Write(getRequest); err != nil {
			return err
		}
		got, err := w.answer()
		if err != nil {
			return err
		}
		if got != status {
			return fmt.Errorf("status %d; it must be %d", got, status)
		}
	}
	return nil
}

// answer reads one answer and returns its status.
func (w *wire) answer() (status int, err error) {
	length := -1
	for {
		line, err := w.answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case status == 0:
			if len(line) < len("HTTP/1.1 200") {
				return 0, fmt.Errorf("status line %q", line)
			}
			status, err = strconv.Atoi(string(line[9:12]))
		case bytes.HasPrefix(line, contentLength):
			length, err = strconv.Atoi(string(line[len(contentLength):]))
		case len(line) == 0 && length < 0:
			return 0, errors.New("an answer without Content-Length")
		case len(line) == 0:
			_, err = w.answers.Discard(length)
			return status, err
		}
		if err != nil {
			return 0, err
		}
	}
}
