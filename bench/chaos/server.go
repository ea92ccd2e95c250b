//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// server is a Redis process of our own.
type server struct {
	dir   string
	port  int
	args  []string
	clock string // of a server whose clock can be turned: the file that says by how much
	cmd   *exec.Cmd
	exit  chan struct{} // closed when the process is gone
}

// newServer starts a server with an empty memory on a free port. dir is its own.
func newServer(dir string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &server{dir: dir, args: args}
	return s, s.begin()
}

// newTurnedServer starts one whose clock obeys turn; "" if there is no libfaketime.
func newTurnedServer(dir string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &server{dir: dir, args: args, clock: filepath.Join(dir, "clock")}
	if err := s.turn("+0"); err != nil {
		return nil, err
	}
	return s, s.begin()
}

// begin tries ports until the server has one: between the look for a free one and the
// start of the server somebody else may take it.
func (s *server) begin() (err error) {
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.start(); err == nil {
			return nil
		}
	}
	return err
}

// freePort returns a port that nobody listens on. It is below those that the system
// gives to clients: one of them would have it while the server is down.
func freePort() (int, error) {
	for {
		port := 15000 + rand.IntN(15000)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, err
		}
	}
}

func (s *server) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// start starts the process and waits until it answers. It keeps nothing on disk, so a
// server that is started again begins empty.
func (s *server) start() error {
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--logfile", filepath.Join(s.dir, "log"),
	}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.clock != "" {
		// The C library's memory before the one that Debian's redis brings along, which
		// looks at the clock while libfaketime is not yet up.
		s.cmd.Env = append(os.Environ(), "LD_PRELOAD="+faketime()+":libc.so.6", "FAKETIME_TIMESTAMP_FILE="+s.clock,
			"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1")
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	exit, cmd := make(chan struct{}), s.cmd
	s.exit = exit
	go func() { // ends with the process, for which stop waits
		cmd.Wait()
		close(exit)
	}()
	return s.answers()
}

func (s *server) answers() error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.exit:
			return fmt.Errorf("chaos: redis-server ended at once; see %s", filepath.Join(s.dir, "log"))
		default:
		}
		if answer, err := ask(s.addr(), "PING"); err == nil && answer == "PONG" {
			return nil
		}
	}
	s.kill()
	return errors.New("chaos: redis-server does not answer")
}

// do sends the server a command.
func (s *server) do(args ...string) error {
	_, err := ask(s.addr(), args...)
	return err
}

// kill ends the process as a crash would, and waits until it is gone.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	s.cmd.Process.Signal(syscall.SIGCONT)
	<-s.exit
}

func (s *server) signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// turn turns the server's clock: "+3600" is an hour ahead, "+0 x1.1" is a tenth fast.
func (s *server) turn(to string) error {
	next := s.clock + ".next"
	if err := os.WriteFile(next, []byte(to+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.clock) // never half of it
}

// faketime returns the library that turns a process's clock, "" if it is not installed.
func faketime() string {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
