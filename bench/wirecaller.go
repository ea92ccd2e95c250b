package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// wireCaller is one connection that stays open and asks for the same again and again.
// It knows as much of HTTP/1.1 as the servers here speak: a status line, headers, a
// Content-Length.
type wireCaller struct {
	conn    net.Conn
	request []byte
	length  int // of the last answer's body
	answers *bufio.Reader
	body    []byte // of the last answer, if keep is set
	keep    bool
}

var lengthName = []byte("content-length")

func callerOf(address, path string) (*wireCaller, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &wireCaller{
		conn: conn, answers: bufio.NewReaderSize(conn, 64<<10),
		request: []byte("GET " + path + " HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"),
	}, nil
}

// ask sends the request and takes in its answer.
func (c *wireCaller) ask() (status int, err error) {
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, err
	}
	c.length = -1
	for {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case status == 0:
			if len(line) < len("HTTP/1.1 200") {
				return 0, fmt.Errorf("status line %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, err
			}
		case len(line) == 0 && c.length < 0:
			return 0, errors.New("an answer without Content-Length")
		case len(line) == 0:
			return status, c.take(c.length)
		case len(line) > len(lengthName) && bytes.EqualFold(line[:len(lengthName)], lengthName):
			if c.length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthName)+1:]))); err != nil {
				return 0, err
			}
		}
	}
}

// take takes in a body.
func (c *wireCaller) take(length int) error {
	if !c.keep {
		_, err := c.answers.Discard(length)
		return err
	}
	body, err := c.answers.Peek(length)
	c.body = append(c.body[:0], body...)
	if err == nil {
		_, err = c.answers.Discard(length)
	}
	return err
}
