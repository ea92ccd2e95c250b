package forebaytest_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// TestReports is a test as the users of the kit write it: one request runs, one
// waits, one is refused. The wait is exactly 100 ms and takes no real time. The
// answers are left unread, which must not keep the bubble from ending.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec forebaytest.Recorder
		gate, err := forebay.New(forebay.Config{
			Name: "reports", MaxInFlight: 1, MaxWait: 100 * time.Millisecond, MaxWaiting: 1,
			Observers: []forebay.Observer{&rec},
		})
		if err != nil {
			t.Fatal(err)
		}
		backend := &forebaytest.Backend{}
		client := forebaytest.Serve(t, gate.Wrap(backend))

		for range 3 {
			go client.Get(forebaytest.URL + "/reports")
			synctest.Wait() // it runs, stands in line or has been refused
		}
		if running, waiting := backend.InFlight(), gate.Stats().Waiting; running != 1 || waiting != 1 {
			t.Errorf("%d run and %d wait, want 1 and 1", running, waiting)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		want := []forebay.Decision{forebay.Accepted, forebay.RejectedBusy, forebay.RejectedTimeout}
		if got := rec.Decisions(); !slices.Equal(got, want) {
			t.Errorf("Decisions = %v, want %v", got, want)
		}
		if waited := rec.Events()[2].Waited; waited != 100*time.Millisecond {
			t.Errorf("Waited = %v, want 100ms", waited)
		}
		backend.Release(1)
		synctest.Wait()
		rec.Check(t, gate)
		forebaytest.CheckConserved(t, 3, gate)
	})
}

// TestMyGate is how the author of a new kind of gate runs the suite; this one
// tells as little of itself as it may.
func TestMyGate(t *testing.T) {
	forebaytest.Conformance(t, func(t testing.TB, c forebay.Config, backend http.Handler) *forebaytest.System {
		gate, err := forebay.New(c)
		if err != nil {
			t.Fatal(err)
		}
		s := forebaytest.NewSystem(gate.Wrap(backend), gate)
		return &forebaytest.System{Handler: s.Handler, Stats: s.Stats}
	})
}
