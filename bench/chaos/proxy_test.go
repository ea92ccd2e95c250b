//go:build linux

package main

import (
	"bufio"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// counting is a server that answers every command with how many it has heard.
type counting struct {
	listener net.Listener
	mu       sync.Mutex // guards what follows
	heard    []string
	bell     chan struct{} // rings after every command
}

func newCounting(t *testing.T) *counting {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{listener: listener, bell: make(chan struct{}, 100)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *counting) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.heard = append(c.heard, command.name)
		n := len(c.heard)
		c.mu.Unlock()
		c.bell <- struct{}{}
		conn.Write([]byte(":" + strconv.Itoa(n) + "\r\n"))
	}
}

func (c *counting) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.heard)
}

func linkTo(t *testing.T, c *counting) *link {
	l, err := newLink(c.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// talk opens a connection through the link.
func talk(t *testing.T, l *link) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

func answerOf(t *testing.T, conn net.Conn, in *bufio.Reader, command string) string {
	if _, err := conn.Write(encode(command, "argument\r\nof two lines")); err != nil {
		t.Fatal(err)
	}
	answer, err := readAnswer(in)
	if err != nil {
		return err.Error()
	}
	return answer
}

func TestLinkPasses(t *testing.T) {
	c := newCounting(t)
	conn, in := talk(t, linkTo(t, c))
	for _, want := range []string{"1", "2", "3"} {
		if got := answerOf(t, conn, in, "evalsha"); got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
	}
}

func TestLinkCuts(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	conn, in := talk(t, l)
	answerOf(t, conn, in, "GET")
	l.set(mood{cut: true})
	if _, err := readAnswer(in); err == nil {
		t.Error("a connection outlived the cut")
	}
	_, in = talk(t, l)
	if _, err := readAnswer(in); err == nil {
		t.Error("a new connection outlived the cut")
	}
	l.set(mood{})
	conn, in = talk(t, l)
	if got := answerOf(t, conn, in, "GET"); got != "2" {
		t.Errorf("answer %q after the cut, want 2", got)
	}
}

// While a link is silent it takes what it is given, and the server hears it later,
// even from a client that has hung up.
func TestLinkSilent(t *testing.T) {
	c := newCounting(t)
	silent, open := linkTo(t, c), linkTo(t, c)
	silent.set(mood{silent: true})
	gone, _ := talk(t, silent)
	gone.Write(encode("LATE"))
	gone.Close()
	conn, in := talk(t, open)
	if got := answerOf(t, conn, in, "GET"); got != "1" {
		t.Errorf("answer %q, want 1: something came through a silent link", got)
	}
	silent.set(mood{})
	<-c.bell
	<-c.bell
	if got := c.all(); !slices.Equal(got, []string{"GET", "LATE"}) {
		t.Errorf("heard %q", got)
	}
}

func TestLinkMute(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	l.set(mood{mute: true})
	conn, in := talk(t, l)
	conn.Write(encode("GET"))
	<-c.bell // the request has passed
	answers := make(chan string)
	go func() { a, _ := readAnswer(in); answers <- a }()
	select {
	case a := <-answers:
		t.Errorf("answer %q through a mute link", a)
	case <-time.After(10 * time.Millisecond):
	}
	l.set(mood{})
	if a := <-answers; a != "1" {
		t.Errorf("answer %q once it speaks again, want 1", a)
	}
}

func TestLinkLosesAnswers(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	l.set(mood{swallow: 1})
	conn, in := talk(t, l)
	if got := answerOf(t, conn, in, "PING"); got != "1" {
		t.Errorf("answer %q to a command that changes nothing, want 1", got)
	}
	<-c.bell
	conn.Write(encode("EVALSHA"))
	<-c.bell // the server has heard it
	if a, err := readAnswer(in); err == nil {
		t.Errorf("answer %q, want none", a)
	}
}

func TestLinkLosesCommands(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	l.set(mood{drop: 1})
	conn, in := talk(t, l)
	conn.Write(encode("EVALSHA"))
	if a, err := readAnswer(in); err == nil {
		t.Errorf("answer %q, want none", a)
	}
	l.set(mood{})
	conn, in = talk(t, l)
	if got := answerOf(t, conn, in, "GET"); got != "1" {
		t.Errorf("answer %q, want 1: the lost command was heard", got)
	}
}

func TestLinkRepeats(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	l.set(mood{again: 1})
	conn, in := talk(t, l)
	answerOf(t, conn, in, "EVALSHA")
	<-c.bell
	<-c.bell
	if got := c.all(); !slices.Equal(got, []string{"EVALSHA", "EVALSHA"}) {
		t.Errorf("heard %q", got)
	}
}

// A link between servers can hold back what goes to a replica, and nothing else.
func TestLinkDeafens(t *testing.T) {
	c := newCounting(t)
	l := linkTo(t, c)
	l.set(mood{deafen: true})
	replica, replicaIn := talk(t, l)
	replica.Write(encode("PSYNC"))
	<-c.bell
	conn, in := talk(t, l)
	if got := answerOf(t, conn, in, "GET"); got != "2" {
		t.Errorf("answer %q to a client, want 2", got)
	}
	l.set(mood{})
	if a, err := readAnswer(replicaIn); a != "1" {
		t.Errorf("answer %q, %v to the replica, want 1", a, err)
	}
}

func TestReadAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for said, want := range map[string]string{
		"+OK\r\n": "OK", ":7\r\n": "7", "$3\r\nabc\r\n": "abc", "$-1\r\n": "",
		"*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n": "a\n1\n2",
	} {
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				conn.Write([]byte(said))
				conn.Close()
			}
		}()
		if got, err := ask(listener.Addr().String(), "X"); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", said, got, err, want)
		}
	}
}
