package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

const (
	plainAnswer = "plain 200"
	cpuMicros   = "server CPU, µs"
	wireConns   = 16
	// wireBatches is into how many parts a round is cut, taken in turn as well:
	// the cost of a system call drifts within a round by more than we look for.
	wireBatches = 20
)

func wireSection(e effort) (*section, error) {
	size := refusalSize()
	sites, err := openSites(size)
	if err != nil {
		return nil, err
	}
	client, err := startClient()
	if err != nil {
		return nil, errors.Join(err, sites.close())
	}
	s := &section{
		name: "wire", title: "On the wire", base: plainAnswer,
		about: "net/http servers on loopback with 16 connections that stay open, asked by a client in a process of its own, so that the processor time of this process is the server's and nothing else. The plain handler answers a 200 with " + strconv.Itoa(size) + " bytes of JSON, as many as forebay's refusal has.",
		columns: []column{
			{name: cpuMicros, ratio: "x plain 200"},
		},
		targets: []target{
			{what: "processor time of a refusal ÷ of a plain 200 of the same size", limit: 1.15, of: quotient(wrapRefused, plainAnswer, cpuMicros)},
		},
		notes: []string{"The kernel's half of a request is in every row; it is most of it."},
		close: func() { _ = client.close(); _ = sites.close() },
	}
	for _, site := range sites {
		s.rows = append(s.rows, row{name: site.name, kind: site.kind, against: site.against})
	}
	s.together = func(i int) (round, error) { return askSites(client, sites, i, e.wireRequests) }
	if _, err := askSites(client, sites, 0, 10*wireConns); err != nil { // opens the connections
		s.end()
		return nil, err
	}
	return s, nil
}

// askSites sends so many requests to each site, batch by batch, and measures what
// the server spent on them.
func askSites(client *client, sites sites, i, requests int) (round, error) {
	spent := map[string]float64{}
	batch := max(1, requests/wireBatches)
	for k := range wireBatches * len(sites) {
		site := sites[(i+k)%len(sites)]
		used := cpuTime()
		if err := client.ask(site.addr, batch, site.status); err != nil {
			return nil, err
		}
		spent[site.name] += cpuTime() - used
	}
	m := round{}
	for name, ns := range spent {
		m[name] = figures{cpuMicros: ns / float64(batch*wireBatches) / 1000}
	}
	return m, nil
}

// refusalSize is how long the body of forebay's refusal is.
func refusalSize() int {
	for _, m := range middlewares(nothing{}) {
		if m.name == wrapRefused {
			w := httptest.NewRecorder()
			m.handler.ServeHTTP(w, newRequest())
			return w.Body.Len()
		}
	}
	panic("bench: no refusal of ours")
}

// site is one handler with a server of its own.
type site struct {
	wrapped
	addr   string
	server *http.Server
	done   chan struct{}
}

type sites []*site

// openSites serves the plain handler bare and behind every gate.
func openSites(size int) (sites, error) {
	plain := plainHandler(size)
	var all sites
	for _, m := range append([]wrapped{{plainAnswer, yardstick, "", plain, http.StatusOK}}, middlewares(plain)...) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		s := &site{
			wrapped: m, addr: listener.Addr().String(), done: make(chan struct{}),
			server: &http.Server{Handler: m.handler, ReadHeaderTimeout: time.Minute},
		}
		go func() {
			defer close(s.done)
			_ = s.server.Serve(listener) // it ends with ErrServerClosed
		}()
		all = append(all, s)
	}
	return all, nil
}

func (all sites) close() error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.server.Close())
		<-s.done
	}
	return errors.Join(errs...)
}

// plainHandler answers a 200 with a body of that size.
func plainHandler(size int) http.Handler {
	body := bytes.Repeat([]byte("x"), size)
	kind := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = kind
		_, _ = w.Write(body) // a client that is gone ends the run by itself
	})
}
