package forebay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGatesFindsGatesInOrder(t *testing.T) {
	gs, err := NewGates(Config{Name: "reports", MaxInFlight: 2}, Config{Name: "orders", MaxInFlight: 3}, Config{MaxInFlight: 1})
	must(err)
	var names []string
	for g := range gs.All() {
		names = append(names, g.Name())
	}
	if want := []string{"reports", "orders", "gate"}; !slices.Equal(names, want) {
		t.Errorf("gates %v, want %v", names, want)
	}
	if g := gs.Get("orders"); g == nil || g.Name() != "orders" {
		t.Errorf("Get = %v", g)
	}
	if gs.Get("nobody") != nil {
		t.Error("Get finds a gate that is not there")
	}
	if st, ok := gs.Stats("orders"); !ok || st.Capacity != 3 || st.Name != "orders" {
		t.Errorf("Stats = %+v, %v", st, ok)
	}
	if _, ok := gs.Stats("nobody"); ok {
		t.Error("Stats finds a gate that is not there")
	}
}

func TestNewGatesNamesEveryMistake(t *testing.T) {
	gs, err := NewGates(
		Config{Name: "reports", MaxInFlight: 2}, Config{Name: "reports", MaxInFlight: 2},
		Config{Name: "or ders", MaxWait: -1}, Config{Name: "fine", MaxInFlight: 1}, Config{MaxInFlight: 1}, Config{MaxInFlight: 1},
	)
	if gs != nil || err == nil {
		t.Fatalf("gates %v, error %v", gs, err)
	}
	for _, want := range []string{
		`configuration 2 of 6: the name "reports" is taken; every gate needs its own`,
		`configuration 6 of 6: the name "gate" is taken; every gate needs its own`,
		"configuration 3 of 6", "MaxInFlight is 0", "MaxWait is -1ns", `Name is "or ders"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error\n%v\nlacks %s", err, want)
		}
	}
}

func TestDrainAllDrainsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs, err := NewGates(Config{Name: "a", MaxInFlight: 1, MaxWait: time.Hour}, Config{Name: "b", MaxInFlight: 1}, Config{Name: "c", MaxInFlight: 1})
		must(err)
		a, b := take(t, gs.Get("a"), 1), take(t, gs.Get("b"), 1)
		waits := queued(t, context.Background(), gs.Get("a"), Call{})
		time.AfterFunc(time.Second, a.Release)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		began := time.Now()
		err = gs.DrainAll(ctx)
		want := `forebay: gate "b" still has calls in flight: context deadline exceeded`
		if err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("DrainAll = %v after %v, want %s after 2s", err, time.Since(began), want)
		}
		waits.refused(t, RejectedDraining, 0)
		for g := range gs.All() {
			if !g.Stats().Draining {
				t.Errorf("gate %q does not drain", g.Name())
			}
		}
		b.Release()
		if err := gs.DrainAll(context.Background()); err != nil {
			t.Errorf("DrainAll again: %v", err)
		}
		gs.ResumeAll()
		for g := range gs.All() {
			admitsFullSet(t, g)
		}
	})
}
