package main

import (
	"io"
	"net"
	"testing"
)

// The least of servers keeps requests apart, with a body and without one.
func TestWireServerKeepsRequestsApart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &wireServer{listener: l, answer: func(path []byte) []byte { return statusAnswer("200 OK", path) }}
	served := make(chan bool)
	go func() {
		defer close(served)
		s.serve()
	}()
	defer func() {
		s.close()
		<-served
	}()
	c, err := callerOf(l.Addr().String(), "/get")
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	c.keep = true
	for range 3 {
		if status, err := c.ask(); status != 200 || err != nil || string(c.body) != "/get" {
			t.Fatalf("GET: %d %q %v", status, c.body, err)
		}
		get := c.request
		c.request = []byte("POST /post HTTP/1.1\r\nHost: x\r\ncontent-length: 7\r\n\r\nGET /x ")
		if status, err := c.ask(); status != 200 || err != nil || string(c.body) != "/post" {
			t.Fatalf("POST: %d %q %v", status, c.body, err)
		}
		c.request = get
	}
	if _, err := io.WriteString(c.conn, "broken\n\n"); err != nil {
		t.Fatal(err)
	}
}

// What the program says of itself is added up.
func TestSumOf(t *testing.T) {
	if got := sumOf(`{"in_use":3,"waiting":4},{"in_use":5,"max_waiting":9}`, `"(?:in_use|waiting)":(\d+)`); got != 12 {
		t.Errorf("%v, want 12", got)
	}
}
