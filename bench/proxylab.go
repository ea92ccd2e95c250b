package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// proxyLab is the upstream and the proxies before it that the sections share.
type proxyLab struct {
	direct *proxy // the upstream itself
	all    []*proxy
}

// proxies starts them, once.
var proxies = sync.OnceValues(func() (*proxyLab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	up, err := start(address, exec.Command(self, upstreamCommand, address))
	if err != nil {
		return nil, err
	}
	lab := &proxyLab{direct: &proxy{name: nameDirect, kind: yardstick, address: address, process: up}}
	lab.all, err = startProxies(func(string) string { return address })
	return lab, err
})

// startProxies starts one proxy of each kind before the upstream that it is to have.
func startProxies(upstream func(name string) string) ([]*proxy, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	var all []*proxy
	for _, r := range recipes {
		p, err := r.start(upstream(r.name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// missing says which programs are not installed.
func missing() error {
	var errs []error
	for _, r := range recipes {
		if r.name != nameOurs && findProgram(r.program) == "" {
			errs = append(errs, fmt.Errorf("%s is not installed; scripts/servers bench installs it", r.program))
		}
	}
	return errors.Join(errs...)
}

// findProgram looks where Debian puts servers, too, which PATH may leave out.
func findProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if path, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		return path
	}
	return ""
}

// rows has one row for each proxy.
func (l *proxyLab) rows(measure func(*proxy) figures) (rows []row) {
	for _, p := range l.all {
		r := row{name: p.name, kind: p.kind}
		if p.kind == rival {
			r.against = nameOurs
		}
		if measure != nil {
			r.measure = func() figures { return measure(p) }
		}
		rows = append(rows, r)
	}
	return rows
}

// warm opens the connections, and sees that every proxy answers as it should.
func (l *proxyLab) warm(conns int, what exchange) {
	for _, p := range l.all {
		p.load(conns, 50*conns, what)
	}
}

// fill takes the one slot of every proxy, and returns how to give them back.
func (l *proxyLab) fill() (release func(), err error) {
	var held []*wireCaller
	release = func() {
		for _, c := range held {
			_ = c.conn.Close()
		}
	}
	for _, p := range l.all {
		c, err := p.fill()
		if err != nil {
			return release, fmt.Errorf("%s: %w", p.name, err)
		}
		held = append(held, c)
	}
	return release, nil
}

// fill takes the one slot of a proxy, and sees that it is taken. It tries again where
// the one who looked came first.
func (p *proxy) fill() (*wireCaller, error) {
	for range 20 {
		held, err := callerOf(p.address, "/full/hold")
		if err != nil {
			return nil, err
		}
		if _, err := held.conn.Write(held.request); err != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
		status, err := p.askOnce("/full")
		if err != nil || status == http.StatusServiceUnavailable {
			return held, err
		}
		_ = held.conn.Close()
	}
	return nil, errors.New("it does not refuse")
}

// askOnce asks over a connection of its own.
func (p *proxy) askOnce(path string) (status int, err error) {
	c, err := callerOf(p.address, path)
	if err != nil {
		return 0, err
	}
	defer c.conn.Close()
	return c.ask()
}

// versions says what the proxies are.
func versions() string {
	var all []string
	for _, r := range recipes {
		if r.version != nil {
			all = append(all, r.version())
		}
	}
	return strings.Join(all, ", ")
}

// firstLine is what a program says when asked.
func firstLine(program string, args ...string) string {
	out, err := exec.Command(findProgram(program), args...).CombinedOutput()
	if err != nil {
		return program + " of an unknown version"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// workshop is a directory for what the proxies write.
var workshop = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "forebay-bench-")
	if err == nil {
		bench.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir, err
})
