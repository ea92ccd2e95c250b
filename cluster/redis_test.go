package cluster_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

// onRedis is the script on a real server.
type onRedis struct {
	t         testing.TB
	key, sha  string
	talk, ear *wire
	syncs     int
}

func newOnRedis(t testing.TB, server *redistest.Server, key string) *onRedis {
	s := &onRedis{t: t, key: key, talk: dial(t, server.Addr()), ear: dial(t, server.Addr())}
	source, sha := cluster.Script()
	if loaded := s.talk.do("SCRIPT", "LOAD", source); loaded != sha {
		t.Fatalf("Redis calls the script %v, we %s", loaded, sha)
	}
	s.sha = sha
	s.ear.do("PSUBSCRIBE", globbed.Replace(key)+"*")
	return s
}

// globbed keeps a key from being a pattern.
var globbed = strings.NewReplacer("[", `\[`, "*", `\*`, "?", `\?`)

func (s *onRedis) Exchange(facts string, r *cluster.Request) (cluster.Reply, []cluster.Message) {
	args := append([]string{"EVALSHA", s.sha, "1", s.key}, r.Args("")...)
	s.syncs++
	sync := strconv.Itoa(s.syncs)
	s.talk.send(append(args, facts)...)
	s.talk.send("PUBLISH", s.key, "sync "+sync)
	answer := s.talk.read()
	s.talk.read()
	if err, failed := answer.(error); failed {
		s.t.Fatalf("the script fails: %v\non %q", err, append(args, facts))
	}
	reply, err := cluster.ParseReply(answer.(string))
	if err != nil {
		s.t.Fatal(err)
	}
	return reply, s.heard("sync " + sync)
}

// heard returns what was published up to a last message.
func (s *onRedis) heard(last string) (messages []cluster.Message) {
	for {
		m := s.ear.read().([]any)
		text := m[3].(string)
		if text == last {
			return messages
		}
		messages = append(messages, cluster.Message{Channel: m[2].(string), Text: text})
	}
}

func (s *onRedis) Fields() map[string]string {
	kept := map[string]string{}
	flat := s.talk.do("HGETALL", s.key).([]any)
	for i := 0; i < len(flat); i += 2 {
		kept[flat[i].(string)] = flat[i+1].(string)
	}
	return kept
}

func (s *onRedis) Wipe() { s.talk.do("DEL", s.key) }

// Spoil damages the key so that the next step notices, whoever takes it.
func (s *onRedis) Spoil(way int) {
	kept := s.Fields()
	switch way % 6 {
	case 0:
		s.talk.do("SET", s.key, "something else")
	case 1:
		s.Wipe()
		s.talk.do("LPUSH", s.key, "a token")
	case 2:
		s.talk.do("HSET", s.key, "m", "garbage")
	case 3:
		s.talk.do("HSET", s.key, "e", "\x09"+kept["e"][1:])
	case 4:
		s.talk.do("HDEL", s.key, "m")
	case 5:
		s.talk.do("HSET", s.key, "e", kept["e"]+"\x07")
	}
}

// CopyOf remembers what is kept; the function returned puts it back.
func (s *onRedis) CopyOf() (restore func()) {
	dumped, _ := s.talk.do("DUMP", s.key).(string)
	return func() {
		s.Wipe()
		if dumped != "" {
			s.talk.do("RESTORE", s.key, "0", dumped)
		}
	}
}

// TestScriptIsTheModel plays scripts and histories on the model and on Redis.
func TestScriptIsTheModel(t *testing.T) {
	key := cluster.KeyOf("t", "g")
	side := newOnRedis(t, redistest.Start(t, redistest.Config{}), key)
	t.Run("scripts", func(t *testing.T) { cluster.PlayScripts(t, key, side) })
	t.Run("histories", func(t *testing.T) { cluster.CompareHistories(t, side, key) })
}

// wire is a connection that speaks the little of Redis' protocol that is needed here.
type wire struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, addr string) *wire {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t: t, conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
}

func (w *wire) do(args ...string) any {
	w.send(args...)
	v := w.read()
	if err, failed := v.(error); failed {
		w.t.Fatalf("%q: %v", args, err)
	}
	return v
}

func (w *wire) send(args ...string) {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := w.conn.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// read returns a string, an int, nil, an error or a []any.
func (w *wire) read() any {
	line, err := w.in.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	kind, rest := line[0], strings.TrimRight(line[1:], "\r\n")
	if kind == '+' {
		return rest
	}
	if kind == '-' {
		return fmt.Errorf("%s", rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		w.t.Fatal(err)
	}
	switch {
	case kind == ':':
		return n
	case n < 0:
		return nil
	case kind == '*':
		all := make([]any, n)
		for i := range all {
			all[i] = w.read()
		}
		return all
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(w.in, b); err != nil {
		w.t.Fatal(err)
	}
	return string(b[:n])
}
