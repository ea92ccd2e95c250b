package forebay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// scriptedLimiter wants what it is told to want, and writes down what it sees.
type scriptedLimiter struct {
	limit int
	start time.Time
	seen  []string
	panic bool
}

func (s *scriptedLimiter) Observe(o *Observation) int {
	if s.start.IsZero() {
		s.start = o.Now
	}
	kind := []string{"change", "join", "start", "finish", "leave"}[o.Kind]
	text := fmt.Sprintf("%v %s: %d+%d of %d, offered %d", o.Now.Sub(s.start), kind, o.InFlight, o.Waiting, o.Limit, o.Offered)
	if o.Cost > 0 {
		text += fmt.Sprintf(", cost %d", o.Cost)
	}
	if o.Waited > 0 {
		text += fmt.Sprintf(", waited %v", o.Waited)
	}
	if o.Held > 0 {
		text += fmt.Sprintf(", held %v", o.Held)
	}
	if o.Outcome != OutcomeDone {
		text += ", " + o.Outcome.String()
	}
	if !o.Deadline.IsZero() {
		text += fmt.Sprintf(", deadline in %v", o.Deadline.Sub(o.Now))
	}
	s.seen = append(s.seen, text)
	if s.panic {
		panic("the limiter breaks")
	}
	return s.limit
}

// saw checks what was observed since the last look.
func (s *scriptedLimiter) saw(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.seen, want) {
		t.Errorf("observed\n%q\nwant\n%q", s.seen, want)
	}
	s.seen = nil
}

func TestLimiterIsToldEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &scriptedLimiter{limit: 2}
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second, MaxWaiting: 1, Limiter: lim})
		lim.saw(t, "0s change: 0+0 of 2, offered 0")
		a := take(t, g, 2)
		lim.saw(t, "0s start: 2+0 of 2, offered 1, cost 2")
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		b := queued(t, ctx, g, Call{})
		lim.saw(t, "1ms join: 2+1 of 2, offered 2, cost 1, deadline in 499ms")
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedBusy, 0)
		lim.saw(t) // a refusal on arrival shows in Offered
		time.Sleep(time.Millisecond)
		a.ReleaseAs(OutcomeOverloaded)
		b.granted(t, time.Millisecond)
		lim.saw(t, "2ms finish: 0+1 of 2, offered 3, cost 2, held 2ms, overloaded",
			"2ms start: 1+0 of 2, offered 3, cost 1, waited 1ms, deadline in 498ms")
		b.lease.Release()
		lim.saw(t, "2ms finish: 0+0 of 2, offered 3, cost 1")
		c := take(t, g, 2)
		left, leave := context.WithCancel(context.Background())
		d := queued(t, left, g, Call{})
		lim.seen = nil
		time.Sleep(time.Millisecond)
		leave()
		d.refused(t, Canceled, time.Millisecond)
		lim.saw(t, "3ms leave: 2+0 of 2, offered 5, cost 1, waited 1ms")
		c.ReleaseAs(OutcomeAborted)
		lim.saw(t, "3ms finish: 0+0 of 2, offered 5, cost 2, held 1ms, aborted")
		must(g.SetLimit(5)) // the limiter moves it back at once
		lim.saw(t, "3ms change: 0+0 of 5, offered 5")
		shows(t, g, "0/2, accepted 3, busy 1, canceled 1")
	})
}

// What a limiter wants is in force at once: growth lets in the difference.
func TestLimiterGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &scriptedLimiter{limit: 1}
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 5, Limiter: lim})
		l := take(t, g, 1)
		a, b, c := queued(t, context.Background(), g, Call{}), queued(t, context.Background(), g, Call{}), queued(t, context.Background(), g, Call{})
		lim.limit = 3
		l.Release()
		a.granted(t, 0)
		b.granted(t, 0)
		c.granted(t, 0)
		shows(t, g, "3/3, accepted 4")
	})
}

// A limit that the end of a call lowers is lower before the slot is handed on.
func TestLimiterShrinksBeforeTheSlotIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &scriptedLimiter{limit: 2}
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second, MaxWaiting: 5, Limiter: lim})
		l, m := take(t, g, 1), take(t, g, 1)
		waits := queued(t, context.Background(), g, Call{})
		lim.limit = 1
		l.Release()
		synctest.Wait()
		if waits.done() {
			t.Error("the slot was handed on above the new limit")
		}
		shows(t, g, "1/1, waiting 1, accepted 2")
		m.Release()
		waits.granted(t, 0)
		shows(t, g, "1/1, accepted 3")
	})
}

func TestLimiterCannotCloseNorOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &scriptedLimiter{limit: -3}
		g := gateOf(t, Config{MaxInFlight: 4, Limiter: lim})
		shows(t, g, "0/1")
		lim.limit = 0
		take(t, g, 1).Release()
		shows(t, g, "0/1, accepted 1")
		must(g.SetLimit(0))
		lim.limit = 9
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedBusy, 0)
		shows(t, g, "0/0, accepted 1, busy 1")
		lim.limit = 1 << 30
		must(g.SetLimit(3))
		shows(t, g, "0/1048575, accepted 1, busy 1")
	})
}

func TestPanicOfALimiterIsContained(t *testing.T) {
	lim := &scriptedLimiter{limit: 2}
	g := gateOf(t, Config{MaxInFlight: 2, Limiter: lim})
	lim.panic = true
	l := take(t, g, 1)
	l.Release()
	if st := g.Stats(); st.LimiterPanics != 2 || st.Capacity != 2 || st.InUse != 0 {
		t.Errorf("%+v, want two panics contained", st)
	}
	lim.panic = false
	admitsFullSet(t, g)
}

func TestOutcomesHaveNames(t *testing.T) {
	var words []string
	for o := OutcomeDone; o <= OutcomeAborted+1; o++ {
		words = append(words, o.String())
	}
	if want := []string{"done", "ignored", "overloaded", "aborted", "unknown"}; !slices.Equal(words, want) {
		t.Errorf("outcomes %v, want %v", words, want)
	}
}
