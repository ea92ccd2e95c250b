package cluster

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	steps      = flag.Int("steps", 30_000, "steps of random histories of the ledger in Go")
	redisSteps = flag.Int("redissteps", 4_000, "steps of random histories on Redis and in Go")
	seed       = flag.Uint64("seed", 1, "of random histories")
)

// stepper is a history under way.
type stepper interface{ step() }

// histories are the kinds of them.
var histories = map[string]func(*twins, dice) stepper{
	"rude":  func(w *twins, d dice) stepper { return newRude(w, d) },
	"world": func(w *twins, d dice) stepper { return newWorld(w, d) },
}

// TestLedgerInvariants runs random histories on the model alone.
func TestLedgerInvariants(t *testing.T) {
	for kind, begin := range histories {
		t.Run(kind, func(t *testing.T) {
			for n := 0; n < *steps; {
				rnd := rand.New(rand.NewPCG(*seed, uint64(n)))
				w := &twins{t: t, key: KeyOf("t", "g")}
				w.checks.polite = kind != "rude"
				h := begin(w, rnd)
				for w.steps < 500 {
					h.step()
				}
				if world, ok := h.(*world); ok {
					world.settle()
				}
				n += w.steps
			}
		})
	}
}

// CompareHistories runs random histories on the model and on the other side: replies,
// messages and what is kept are the same after every step.
func CompareHistories(t *testing.T, other Side, key string) {
	for kind, begin := range histories {
		t.Run(kind, func(t *testing.T) {
			for n := 0; n < *redisSteps; {
				rnd := rand.New(rand.NewPCG(*seed, uint64(n)))
				w := &twins{t: t, key: key, other: other}
				w.checks.polite = kind != "rude"
				w.wipe()
				for h := begin(w, rnd); w.steps < 500; {
					h.step()
				}
				n += w.steps
			}
		})
	}
}

// FuzzLedger has a fuzzer throw the dice of a history.
func FuzzLedger(f *testing.F) {
	for kind := range histories {
		f.Add(kind, []byte("any bytes will do, of which each decides something"))
	}
	f.Fuzz(func(t *testing.T, kind string, throws []byte) {
		begin := histories[kind]
		if begin == nil {
			return
		}
		d := &tape{rest: throws}
		w := &twins{t: t, key: KeyOf("t", "g")}
		w.checks.polite = kind != "rude"
		for h := begin(w, d); len(d.rest) > 0; {
			h.step()
		}
	})
}
