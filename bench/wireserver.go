package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// upstreamCommand starts this program as the upstream of the proxies.
const upstreamCommand = "upstream"

// serveUpstream is the upstream's main: it answers until it is killed.
func serveUpstream(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	small, large := okAnswer(1<<10), okAnswer(1<<20)
	(&wireServer{listener: l, answer: func(path []byte) []byte {
		switch string(path) {
		case "/small":
			return small
		case "/large":
			return large
		case "/full/hold":
			select {} // until the process ends
		}
		return statusAnswer("404 Not Found", nil)
	}}).serve()
	return nil
}

func okAnswer(size int) []byte { return statusAnswer("200 OK", bytes.Repeat([]byte("x"), size)) }

func statusAnswer(status string, body []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// wireServer is the least that answers requests over HTTP/1.1, without a body or with one
// of known length, so that what is measured is what stands before it.
type wireServer struct {
	listener net.Listener
	answer   func(path []byte) []byte // whole, with headers; it may take its time

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
	busy  sync.WaitGroup
}

// serve serves until the listener is closed.
func (s *wireServer) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.conns == nil {
			s.conns = map[net.Conn]bool{}
		}
		s.conns[conn] = true
		s.mu.Unlock()
		s.busy.Go(func() {
			s.serveConn(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *wireServer) serveConn(conn net.Conn) {
	defer conn.Close()
	requests := bufio.NewReaderSize(conn, 8<<10)
	var path []byte
	for {
		path = path[:0]
		body := 0
		for {
			line, err := requests.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(path) == 0 {
				_, rest, _ := bytes.Cut(line, []byte(" "))
				target, _, _ := bytes.Cut(rest, []byte(" "))
				path = append(path, target...)
			}
			if len(line) <= 2 {
				break
			}
			if name, value, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(name, lengthName) {
				body, _ = strconv.Atoi(string(bytes.TrimSpace(value))) // what the proxies write is a number
			}
		}
		if _, err := requests.Discard(body); err != nil {
			return
		}
		if _, err := conn.Write(s.answer(path)); err != nil {
			return
		}
	}
}

// close ends the listener and the connections, and returns when nothing runs any more.
func (s *wireServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.busy.Wait()
}
