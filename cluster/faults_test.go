package cluster_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

var (
	seeds   = flag.Int("seeds", 1, "how many random histories each test of faults plays")
	history = flag.Uint64("history", 0, "the one random history of faults to play; 0: all")
)

var errAway = errors.New("the store is away")

// lossy is a network on a bad day.
var lossy = forebaytest.Faults{
	Takes: time.Millisecond, Jitter: 2 * time.Millisecond,
	LoseRequest: 0.05, LoseReply: 0.05, Delay: 0.03, Repeat: 0.1, LongDelay: 3 * time.Second, LosePush: 0.3,
}

// A fault is something that befalls a rig, and is over after a while.
type fault struct {
	name    string
	strikes func(r *rig, dice *rand.Rand)
	lasts   time.Duration
	heals   func(r *rig)
	parts   bool // some know more of the store than others: Share is exact only if it is withheld
}

// loses are the faults by which a ledger is lost: who is cut off meanwhile is unknown to
// the next one, so what is withheld is lost as well.
var loses = map[string]bool{"wipe": true, "restart": true, "failover": true}

func (r *rig) everywhere(f forebaytest.Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = f
	for _, in := range r.instances {
		if in.goesOn() {
			in.path.SetFaults(f)
		}
	}
}

func healed(r *rig) { r.everywhere(forebaytest.Faults{}) }

func strike(f func(r *rig)) func(*rig, *rand.Rand) { return func(r *rig, _ *rand.Rand) { f(r) } }

var faults = []fault{
	{"lossy network", strike(func(r *rig) { r.everywhere(lossy) }), 10 * time.Second, healed, false},
	{"wipe", strike(func(r *rig) { r.store.Wipe() }), 0, nil, false},
	{"restart", strike(func(r *rig) { r.store.Restart() }), 0, nil, false},
	{"failover", strike(func(r *rig) { r.store.Failover() }), 0, nil, false},
	{"frozen store", strike(func(r *rig) { r.store.Freeze() }), 5 * time.Second, func(r *rig) { r.store.Thaw() }, false},
	{"clock an hour ahead", strike(func(r *rig) { r.store.Jump(time.Hour) }), 0, nil, false},
	{"clock an hour back", strike(func(r *rig) { r.store.Jump(-time.Hour) }), 0, nil, false},
	{"fast clock", strike(func(r *rig) { r.store.Drift(1.1) }), 10 * time.Second, func(r *rig) { r.store.Drift(1) }, false},
	{"slow clock", strike(func(r *rig) { r.store.Drift(0.9) }), 10 * time.Second, func(r *rig) { r.store.Drift(1) }, false},
	{"store away", strike(func(r *rig) { r.everywhere(forebaytest.Faults{Err: errAway}) }), 5 * time.Second, healed, false},
	{"store away for a moment", strike(func(r *rig) { r.everywhere(forebaytest.Faults{Err: errAway}) }), time.Second, healed, false},
	{"slow store", strike(func(r *rig) { r.everywhere(forebaytest.Faults{Takes: 200 * time.Millisecond}) }), 5 * time.Second, healed, false},
	{"sluggish store", strike(func(r *rig) { r.everywhere(forebaytest.Faults{Takes: 60 * time.Millisecond}) }), 5 * time.Second, healed, false},
	{"flapping store", strike(flap), 5 * time.Second, healed, true}, // one meets it as it is there, another never
	{"lost pushes", strike(func(r *rig) { r.everywhere(forebaytest.Faults{LosePush: 1}) }), 5 * time.Second, healed, false},
	{"broken subscriptions", strike(func(r *rig) {
		for _, in := range r.instances {
			in.path.Break()
		}
	}), 0, nil, false},
	{"one cut off", func(r *rig, dice *rand.Rand) {
		if in := r.any(dice); in != nil {
			in.path.SetFaults(forebaytest.Faults{Err: errAway})
		}
	}, 6 * time.Second, healed, true},
	{"one hears no answers", func(r *rig, dice *rand.Rand) {
		if in := r.any(dice); in != nil {
			in.path.SetFaults(forebaytest.Faults{LoseReply: 1})
		}
	}, 6 * time.Second, healed, true},
	{"two cut off, one after the other", cutTwo, 5 * time.Second, healed, true},
	{"one killed, one joins", func(r *rig, dice *rand.Rand) {
		if in := r.any(dice); in != nil {
			in.kill()
		}
		r.joinAndWork()
	}, 0, nil, true},
	{"one leaves, one joins", func(r *rig, dice *rand.Rand) {
		if in := r.any(dice); in != nil {
			in.retire()
		}
		r.joinAndWork()
	}, 0, nil, true},
}

// cutTwo cuts two instances of a bubble off, one after the other.
func cutTwo(r *rig, dice *rand.Rand) {
	for range 2 {
		if in := r.any(dice); in != nil {
			in.path.SetFaults(forebaytest.Faults{LoseRequest: 1})
		}
		time.Sleep(time.Duration(dice.Int64N(int64(2 * time.Second))))
	}
}

// flap lets the store of a bubble come and go.
func flap(r *rig) {
	r.workers.Go(func() {
		for range 10 {
			r.everywhere(forebaytest.Faults{Err: errAway})
			time.Sleep(250 * time.Millisecond) // in a bubble
			healed(r)
			time.Sleep(250 * time.Millisecond)
		}
	})
}

// any returns one of the instances that live, nil if there is only one.
func (r *rig) any(dice *rand.Rand) *instance {
	var live []*instance
	for _, in := range r.instances {
		if in.goesOn() {
			live = append(live, in)
		}
	}
	if len(live) < 2 {
		return nil
	}
	return live[dice.IntN(len(live))]
}

// retire drains the instance and closes its cluster.
func (in *instance) retire() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	close(in.retired)
	if err := in.gate.Drain(ctx); err != nil {
		in.Errorf("%s: %v", in.name, err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = in.cluster.Close(ctx)
}

func (r *rig) joinAndWork() {
	in := r.join()
	in.work(r.each, r.holds, r.pauses)
}

// TestFaults: each fault by itself, under load. The limit holds, nobody waits longer than
// its patience, and afterwards as much is served as before.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of it")
	}
	for nth, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			policies := []cluster.Terms{{}}
			if f.parts {
				policies = []cluster.Terms{{WhenAway: cluster.Closed}, {Withhold: 10 * time.Second}}
			}
			for i := range *seeds { // every other fault meets a fenced gate
				for k, terms := range policies {
					if underRace && (nth+i+k)%3 > 0 {
						continue
					}
					synctest.Test(t, func(t *testing.T) { underFault(t, f, terms, uint64(nth+i+1)) })
				}
			}
		})
	}
}

// underFault runs in a bubble.
func underFault(t *testing.T, f fault, terms cluster.Terms, seed uint64) {
	r := newRig(t, 12)
	r.each, r.holds, r.pauses = 5, 25*time.Millisecond, 2*time.Millisecond
	r.terms = terms
	r.terms.Fenced = seed%2 == 0
	r.store.Replicate(400 * time.Millisecond)
	for range 4 {
		r.joinAndWork()
	}
	time.Sleep(2 * time.Second)
	before := r.during(2 * time.Second)
	dice := rand.New(rand.NewPCG(seed, 2))
	f.strikes(r, dice)
	meanwhile := r.during(max(f.lasts, time.Second))
	if f.heals != nil {
		f.heals(r)
	}
	soon := r.during(time.Second)
	time.Sleep(4*time.Second + 2*r.terms.Withhold) // the share of one that was killed is kept for so long
	after := r.during(2 * time.Second)
	t.Logf("seed %d: %d calls in 2 s before, %d in %v meanwhile, %d in the first second after, %d in 2 s later; %s",
		seed, before, meanwhile, max(f.lasts, time.Second), soon, after, r.rec.summary())
	if after < before*9/10 {
		t.Errorf("seed %d: %d calls served in 2 s before, %d after", seed, before, after)
	}
	r.halt()
	r.rec.check(t)
}

// TestHistories plays random histories of faults that overlap.
func TestHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of it")
	}
	for i := range *seeds {
		s := uint64(i + 1)
		if *history != 0 {
			s = *history
			if i > 0 {
				break
			}
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playHistory(t, s) })
		})
	}
}

// playHistory runs in a bubble.
func playHistory(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 3))
	r := newRig(t, 1+dice.IntN(20))
	r.config.MaxWait = []time.Duration{time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond, 0}[dice.IntN(4)]
	if r.config.MaxWait == 0 {
		r.config.MaxWaiting = 0
	}
	r.each, r.holds, r.pauses = 1+dice.IntN(8), time.Duration(1+dice.IntN(50))*time.Millisecond, time.Duration(1+dice.IntN(20))*time.Millisecond
	r.terms = []cluster.Terms{{WhenAway: cluster.Closed}, {}, {Withhold: time.Duration(2+dice.IntN(10)) * time.Second}}[dice.IntN(3)]
	r.terms.Fenced = dice.IntN(3) == 0
	r.store.Replicate(400 * time.Millisecond)
	for range 1 + dice.IntN(5) {
		r.joinAndWork()
	}
	time.Sleep(time.Second)
	var told []string
	for range 20 {
		f := faults[dice.IntN(len(faults))]
		withheld := r.terms.Withhold > 0
		if f.parts && r.terms.WhenAway == cluster.Share && !withheld || loses[f.name] && withheld {
			continue
		}
		told = append(told, fmt.Sprintf("%v %s", time.Since(bubbleStart), f.name))
		f.strikes(r, dice)
		time.Sleep(time.Duration(dice.Int64N(int64(4 * time.Second))))
		if dice.IntN(3) > 0 {
			healed(r)
			r.store.Thaw()
		}
	}
	healed(r)
	r.store.Thaw()
	r.store.Drift(1)
	time.Sleep(10 * time.Second)
	if n := r.during(5 * time.Second); n == 0 {
		t.Errorf("nothing is served any more: %s", r.rec.summary())
	}
	r.halt()
	t.Logf("%+v, limit %d, patience %v, %d×%d workers, %v and %v: %s", r.terms, r.config.MaxInFlight, r.config.MaxWait,
		len(r.instances), r.each, r.holds, r.pauses, r.rec.summary())
	r.rec.check(t)
	if t.Failed() {
		for _, s := range told {
			t.Log(s)
		}
	}
}
