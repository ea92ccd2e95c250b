package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The shop of the real runs: a pool that carries about 260 orders a second, so that two
// cores are enough for the callers, the program and the shop at ten times the load.
const (
	realPool = 16
	realHold = 30 * ms // of each of the two queries of an order
	realRate = 250     // orders a second that are called the load of 1
)

// realLegs is how long each part of a run takes: to begin, whole, halved, whole again.
type realLegs struct{ warmUp, leg time.Duration }

// loopback is the shop with the program before it, on this machine.
type loopback struct {
	program, shop string // the binaries
	dir           string
	legs          realLegs
}

func newLoopback(dir string, legs realLegs) (*loopback, error) {
	l := &loopback{program: filepath.Join(dir, "forebay"), shop: filepath.Join(dir, "shop"), dir: dir, legs: legs}
	for out, from := range map[string]string{l.program: "../cmd/forebay", l.shop: "../examples/shop"} {
		build := exec.Command("go", "build", "-o", out, ".")
		build.Dir = from
		if said, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build in %s: %w: %s", from, err, said)
		}
	}
	return l, nil
}

// serve starts a server and returns what stops it, once it listens.
func serve(address string, program string, args ...string) (stop func(), err error) {
	cmd := exec.Command(program, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { // ends with the process, for which stop waits
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Kill() // nothing in it is worth waiting for
		<-ended
	}
	for range 1000 {
		if c, err := net.Dial("tcp", address); err == nil {
			return stop, c.Close()
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s has ended: %s", program, strings.TrimSpace(said.String()))
		case <-time.After(20 * ms):
		}
	}
	stop()
	return nil, fmt.Errorf("%s does not listen at %s", program, address)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// answers is what became of the calls of one run, by leg: whole, halved, restored.
type answers struct {
	good    [3]float64 // a second, in time
	refused int
	late    int
}

func (a answers) mean() float64 { return (a.good[0] + a.good[1] + a.good[2]) / 3 }

// run puts a load to the program with a limit, with the shop's pool halved in the middle.
func (l *loopback) run(limit string, load float64, seed uint64) (a answers, err error) {
	shopAt, err := freeAddress()
	if err != nil {
		return a, err
	}
	at, err := freeAddress()
	if err != nil {
		return a, err
	}
	stopShop, err := serve(shopAt, l.shop, "--listen", shopAt, "--data", filepath.Join(l.dir, "data"), "--pool", fmt.Sprint(realPool), "--hold", realHold.String(), "--quiet")
	if err != nil {
		return a, err
	}
	defer stopShop()
	file := filepath.Join(l.dir, "forebay.yaml")
	text := fmt.Sprintf("listen: %s\nupstream: http://%s\ngates:\n  shop: {max_in_flight: %s, max_wait: 100ms}\nroutes:\n  - {match: /, gate: shop}\n", at, shopAt, limit)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return a, err
	}
	stop, err := serve(at, l.program, "serve", "-c", file)
	if err != nil {
		return a, err
	}
	defer stop()
	resize := func(n int) error {
		r, err := http.Post(fmt.Sprintf("http://%s/admin/pool?size=%d", shopAt, n), "", nil)
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
	return l.call("http://"+at, load*realRate, seed, resize)
}

// call makes calls at a rate, as a Poisson process, and counts what is answered in
// time. The same seed makes the same calls.
func (l *loopback) call(to string, rate float64, seed uint64, resize func(n int) error) (a answers, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, MaxIdleConns: 4096, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: deadline}
	whole := l.legs.warmUp + 3*l.legs.leg
	dice := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex // guards a
	var calls sync.WaitGroup
	halve, restore := time.AfterFunc(l.legs.warmUp+l.legs.leg, func() { _ = resize(realPool / 2) }), time.AfterFunc(l.legs.warmUp+2*l.legs.leg, func() { _ = resize(realPool) })
	defer halve.Stop()
	defer restore.Stop()
	began := time.Now()
	for at := time.Duration(0); at < whole; at += time.Duration(dice.ExpFloat64() / rate * float64(time.Second)) {
		time.Sleep(at - time.Since(began))
		id := 1 + dice.IntN(10_000)
		calls.Go(func() {
			status := order(client, to, id)
			leg := int((time.Since(began) - l.legs.warmUp) / l.legs.leg)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case status == http.StatusServiceUnavailable:
				a.refused++
			case status != http.StatusOK:
				a.late++
			case time.Since(began) > l.legs.warmUp && leg < 3:
				a.good[leg] += 1 / l.legs.leg.Seconds()
			}
		})
	}
	calls.Wait()
	return a, nil
}

// order asks for one and returns the status, 0 if there was no answer in time.
func order(client *http.Client, to string, id int) int {
	r, err := client.Get(fmt.Sprintf("%s/api/orders/%d", to, id))
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return 0
	}
	return r.StatusCode
}

// realRow is one limit at one load.
type realRow struct {
	load  float64
	limit string
	answers
}

// playLoopback runs auto and a sweep of numbers at each load, and says whether auto is
// within five points of the best of them everywhere.
func playLoopback(ctx context.Context, loads []float64, sweep []string, legs realLegs, out io.Writer) (rows []realRow, err error) {
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l, err := newLoopback(dir, legs)
	if err != nil {
		return nil, err
	}
	for _, load := range loads {
		for _, limit := range slices.Concat([]string{"auto"}, sweep) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			a, err := l.run(limit, load, 1)
			if err != nil {
				return nil, err
			}
			rows = append(rows, realRow{load, limit, a})
			fmt.Fprintf(out, "%g x, %s: %.0f a second; %.0f, halved %.0f, restored %.0f; %d refused, %d late\n", load, limit, a.mean(), a.good[0], a.good[1], a.good[2], a.refused, a.late)
		}
	}
	return rows, nil
}

var errBehind = errors.New("auto is more than five points behind the best number")

// judgeLoopback compares auto with the best number at each load.
func judgeLoopback(rows []realRow, out io.Writer) (err error) {
	fmt.Fprint(out, "\n| load | auto: answers a second, whole, halved, restored | the best number | its answers | auto ÷ best |\n| --- | --- | --- | --- | --- |\n")
	for i := 0; i < len(rows); {
		auto, best := rows[i], realRow{}
		for i++; i < len(rows) && rows[i].load == auto.load; i++ {
			if rows[i].mean() > best.mean() {
				best = rows[i]
			}
		}
		share := auto.mean() / best.mean()
		fmt.Fprintf(out, "| %s | %.0f: %.0f, %.0f, %.0f | %s | %.0f: %.0f, %.0f, %.0f | %.3f |\n", times(auto.load),
			auto.mean(), auto.good[0], auto.good[1], auto.good[2], best.limit, best.mean(), best.good[0], best.good[1], best.good[2], share)
		if share < .95 {
			err = errBehind
		}
	}
	return err
}
