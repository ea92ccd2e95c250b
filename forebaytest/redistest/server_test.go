package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	s := Start(t, Config{Directives: []string{"maxmemory 7mb"}, Password: "secret"})
	if got := s.Info("memory")["maxmemory"]; got != "7340032" {
		t.Errorf("maxmemory = %s, want the one of the directive", got)
	}
	if want := "redis://:secret@" + s.Addr(); s.URL() != want {
		t.Errorf("URL = %s, want %s", s.URL(), want)
	}
	if _, err := os.Stat(s.Socket()); err != nil {
		t.Errorf("the socket: %v", err)
	}
	s.Must("RPUSH", "list", "a", "b")
	got, err := s.Do("LRANGE", "list", "0", "-1")
	if all, ok := got.([]any); err != nil || !ok || len(all) != 2 || all[1] != "b" {
		t.Errorf("LRANGE = %v, %v", got, err)
	}
	if got := s.Must("GET", "nothing"); got != nil {
		t.Errorf("GET of nothing = %v", got)
	}
	var refused ServerError
	if _, err := s.Do("GET", "list"); !errors.As(err, &refused) || !strings.HasPrefix(refused.Error(), "WRONGTYPE") {
		t.Errorf("GET of a list: %v", err)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := Start(t, Config{})
	addr, pid := s.Addr(), s.PID()
	s.Must("SET", "key", "value")
	s.Kill()
	if _, err := s.Do("PING"); err == nil {
		t.Errorf("a killed server answers")
	}
	s.Restart()
	if s.Addr() != addr || s.PID() == pid {
		t.Errorf("now %s by process %d, was %s by %d", s.Addr(), s.PID(), addr, pid)
	}
	if got := s.Must("DBSIZE"); got != int64(0) {
		t.Errorf("%v keys after the restart, want none", got)
	}
	s.Terminate()
	s.Restart()
}

func TestFreeze(t *testing.T) {
	s := Start(t, Config{})
	s.Freeze()
	answered := make(chan error, 1)
	go func() {
		_, err := s.Do("PING")
		answered <- err
	}()
	until(t, "the frozen state", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/stat")
		return err != nil || strings.Contains(string(stat), ") T ")
	})
	select {
	case err := <-answered:
		t.Errorf("a frozen server answers: %v", err)
	default:
	}
	s.Thaw()
	if err := <-answered; err != nil {
		t.Errorf("after it went on: %v", err)
	}
	s.Freeze() // the end of the test stops it all the same
}

// TestEnd shows that nothing is left when a test ends.
func TestEnd(t *testing.T) {
	var s *Server
	t.Run("", func(t *testing.T) { s = Start(t, Config{}) })
	if !s.process().ended() {
		t.Errorf("the server runs on")
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v, want it gone", err)
	}
}

func TestTLS(t *testing.T) {
	s := Start(t, Config{TLS: true})
	if got := s.Must("PING"); got != "PONG" {
		t.Errorf("PING = %v", got)
	}
	if want := "rediss://" + s.Addr(); s.URL() != want {
		t.Errorf("URL = %s, want %s", s.URL(), want)
	}
	plain, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = io.WriteString(plain, "PING\r\n")
	if answer, _ := io.ReadAll(plain); strings.HasPrefix(string(answer), "+") {
		t.Errorf("without TLS it answers %q", answer)
	}
}

func TestUsers(t *testing.T) {
	s := Start(t, Config{})
	s.AddUser("reader", "secret", "~a:*", "+get")
	c, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, step := range []struct {
		command string
		refusal string
	}{
		{"AUTH reader secret", ""}, {"GET a:1", ""}, {"GET b:1", "NOPERM"}, {"SET a:1 x", "NOPERM"},
	} {
		_, err := c.do(strings.Fields(step.command))
		if refused := err != nil; refused != (step.refusal != "") || refused && !strings.HasPrefix(err.Error(), step.refusal) {
			t.Errorf("%s: %v, want %q", step.command, err, step.refusal)
		}
	}
}

func TestCounts(t *testing.T) {
	s := Start(t, Config{})
	before := s.Counts()
	s.Must("EVAL", "return redis.call('TIME')", "0")
	s.Must("SET", "a", "b")
	got := s.Counts().Since(before)
	if got.String() != "eval=1 set=1 time=1" || got.Calls() != 3 {
		t.Errorf("counted %v, %d calls", got, got.Calls())
	}
	if idle := s.Counts().Since(s.Counts()); len(idle) != 0 {
		t.Errorf("nothing was called, and counted was %v", idle)
	}
	if n := s.Connections(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

func TestClock(t *testing.T) {
	s := Start(t, Config{OwnClock: true})
	ahead := func() time.Duration {
		answer, _ := s.Must("TIME").([]any)
		seconds, _ := strconv.ParseInt(answer[0].(string), 10, 64)
		return time.Until(time.Unix(seconds, 0)).Round(time.Minute)
	}
	for _, step := range []struct {
		offset string
		want   time.Duration
	}{{"+0", 0}, {"+3600", time.Hour}, {"-3600", -time.Hour}, {"+0", 0}} {
		s.SetClock(step.offset)
		if got := ahead(); got != step.want {
			t.Errorf("with %s it is ahead by %v, want %v", step.offset, got, step.want)
		}
	}
}
