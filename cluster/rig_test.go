package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// recorder knows what really runs, over all instances.
type recorder struct {
	mu       sync.Mutex // guards what follows
	limit    int        // what may run; changed by the test as it changes the limit
	running  int
	peak     int
	served   int
	overs    []string
	decided  map[forebay.Decision]int
	lost     int
	holders  map[int]string // by number, of a fenced gate
	highest  map[int]uint64 // fences, by number
	tooLong  []string
	lastDone time.Time
}

func (r *recorder) enter(who string, cost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running += cost
	r.peak = max(r.peak, r.running)
	if r.running > r.limit && len(r.overs) < 10 {
		r.overs = append(r.overs, fmt.Sprintf("%v %s starts, and %d run where %d may", time.Since(bubbleStart), who, r.running, r.limit))
	}
}

// number notes who works under which numbers. A resource would let it, and nobody else
// does at the same time.
func (r *recorder) number(who string, fences []forebay.Fence, cost int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holders == nil {
		r.holders, r.highest = map[int]string{}, map[int]uint64{}
	}
	if all && len(fences) != cost {
		r.overs = append(r.overs, fmt.Sprintf("%s runs %d units under the numbers %v", who, cost, fences))
	}
	for _, f := range fences {
		if other := r.holders[f.Number]; other != "" {
			r.overs = append(r.overs, fmt.Sprintf("%v %s has number %d, as %s", time.Since(bubbleStart), who, f.Number, other))
		}
		if f.Fence < r.highest[f.Number] {
			r.overs = append(r.overs, fmt.Sprintf("%v %s has fence %d of number %d, after %d", time.Since(bubbleStart), who, f.Fence, f.Number, r.highest[f.Number]))
		}
		r.holders[f.Number], r.highest[f.Number] = who, f.Fence
	}
}

func (r *recorder) unnumber(fences []forebay.Fence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range fences {
		delete(r.holders, f.Number)
	}
}

func (r *recorder) exit(cost int, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running -= cost
	r.served++
	r.lastDone = time.Now()
	if lost {
		r.lost++
	}
}

// bubbleStart is when time begins in a bubble.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// allow changes how many may run.
func (r *recorder) allow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = n
}

func (r *recorder) allowed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit
}

// peakSince returns how many ran at most since the last call of it.
func (r *recorder) peakSince() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	peak := r.peak
	r.peak = r.running
	return peak
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served
}

// of returns how many calls were decided so.
func (r *recorder) of(d forebay.Decision) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decided[d]
}

// summary is for logs.
func (r *recorder) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d served, %d lost, %v", r.served, r.lost, r.decided)
}

func (r *recorder) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.overs {
		t.Error(o)
	}
	for _, o := range r.tooLong {
		t.Error(o)
	}
}

// rig is a store, and instances that share a gate through it. It is for bubbles.
type rig struct {
	*testing.T
	store   *forebaytest.Store
	rec     *recorder
	config  forebay.Config
	terms   cluster.Terms
	lease   time.Duration
	stop    chan struct{}
	workers sync.WaitGroup

	each          int // workers of an instance
	holds, pauses time.Duration

	mu        sync.Mutex // guards what follows, where a fault of its own accord comes and goes
	instances []*instance
	faults    forebaytest.Faults // everywhere, and of who joins
}

// instance is one process of a rig.
type instance struct {
	*rig
	name    string
	path    *forebaytest.Store
	cluster *cluster.Cluster
	gate    *forebay.Gate
	dead    chan struct{} // it was killed
	retired chan struct{} // it was told to leave

	mu      sync.Mutex // guards what follows
	changes []cluster.Change
}

func newRig(t *testing.T, limit int) *rig {
	r := &rig{
		T: t, store: forebaytest.NewStore(1), rec: &recorder{limit: limit, decided: map[forebay.Decision]int{}},
		config: forebay.Config{Name: "g", MaxInFlight: limit, MaxWait: time.Second, MaxWaiting: 1000, CancelLost: true},
		stop:   make(chan struct{}),
	}
	t.Cleanup(r.end)
	return r
}

// join starts another instance.
func (r *rig) join() *instance {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	in := &instance{rig: r, name: fmt.Sprintf("i%d", len(r.instances)), path: r.store.Path(), dead: make(chan struct{}), retired: make(chan struct{})}
	in.path.SetFaults(r.faults)
	c, err := cluster.New(cluster.Config{
		Store: in.path, Host: in.name, Lease: r.lease, Terms: r.terms,
		Changed: in.changed,
	})
	if err != nil {
		r.Fatal(err)
	}
	in.cluster = c
	config := r.config
	config.Cluster = c
	if in.gate, err = forebay.New(config); err != nil {
		r.Fatal(err)
	}
	r.instances = append(r.instances, in)
	return in
}

// end stops the workers and closes every instance.
func (r *rig) end() {
	r.halt()
	for _, in := range r.instances {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = in.cluster.Close(ctx)
		cancel()
	}
}

// halt stops the workers.
func (r *rig) halt() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	r.workers.Wait()
}

// kill makes the instance vanish, with all that it runs.
func (in *instance) kill() {
	close(in.dead)
	in.path.SetFaults(forebaytest.Faults{Err: errors.New("killed")})
	synctest.Wait()
}

// work has n workers call, again and again: each holds its slot for a time, and pauses
// after.
func (in *instance) work(n int, hold, pause time.Duration) {
	for i := range n {
		in.workers.Go(func() {
			for in.goesOn() {
				in.call(forebay.Call{}, jitter(hold, i))
				in.sleep(jitter(pause, i))
			}
		})
	}
}

func jitter(d time.Duration, i int) time.Duration { return d + d*time.Duration(i%5)/20 }

func (in *instance) goesOn() bool {
	select {
	case <-in.stop:
		return false
	case <-in.dead:
		return false
	case <-in.retired:
		return false
	default:
		return true
	}
}

func (in *instance) sleep(d time.Duration) {
	select {
	case <-after(d):
	case <-in.dead:
	case <-in.retired:
	case <-in.stop:
	}
}

// call acquires, holds and releases.
func (in *instance) call(call forebay.Call, hold time.Duration) forebay.Decision {
	began := time.Now()
	l, err := in.gate.Acquire(context.Background(), call)
	took := time.Since(began)
	d := forebay.Accepted
	var refused *forebay.RejectedError
	if errors.As(err, &refused) {
		d = refused.Decision()
	} else if err != nil {
		in.Errorf("%s: %v", in.name, err)
	}
	in.rec.mu.Lock()
	in.rec.decided[d]++
	if most := max(in.config.MaxWait, 50*time.Millisecond); took > most {
		in.rec.tooLong = append(in.rec.tooLong, fmt.Sprintf("%s: %v after %v", in.name, d, took))
	}
	in.rec.mu.Unlock()
	if err == nil {
		in.hold(l, max(1, call.Cost), hold)
	}
	return d
}

// after is time.After, but for timers that are due at once: two goroutines of a bubble that
// run such ones at the same time crash the race detector.
func after(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	due := make(chan time.Time)
	close(due)
	return due
}

// hold works under a lease, and stops when it is lost.
func (in *instance) hold(l forebay.Lease, cost int, hold time.Duration) {
	select {
	case <-in.dead: // it vanished as it came
		return
	default:
	}
	ctx, cancel := l.Context(context.Background())
	defer cancel()
	in.rec.enter(in.name, cost)
	fences := l.Fences()
	in.rec.number(in.name, fences, cost, in.terms.Fenced && in.terms.WhenAway == cluster.Closed)
	lost := false
	select {
	case <-after(hold):
	case <-ctx.Done():
		lost = true
	case <-in.dead:
	}
	in.rec.unnumber(fences)
	in.rec.exit(cost, lost)
	l.Release()
}

// during runs the clock of a bubble for d, and returns how many calls were served
// meanwhile.
func (r *rig) during(d time.Duration) int {
	before := r.rec.count()
	time.Sleep(d)
	return r.rec.count() - before
}

func (in *instance) mode() string {
	st, _ := in.gate.ClusterStats()
	return st.Mode
}

func (in *instance) changed(c cluster.Change) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.changes = append(in.changes, c)
}

// told returns the changes that were reported.
func (in *instance) told() []cluster.Change {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.changes)
}
