package forebay

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// New names every mistake at once, each with the value and what would be right.
func TestNewNamesEveryMistake(t *testing.T) {
	_, err := New(Config{
		Name: "a b", MaxInFlight: -2, MaxWait: -time.Second, MaxWaiting: -3, MaxHold: -4,
		Observers: []Observer{&eventLog{}, nil},
	})
	want := []string{
		`forebay: Name is "a b"; it must be 1 to 64`,
		"forebay: MaxInFlight is -2; it must be at least 1 (SetLimit(0) closes a gate)",
		"forebay: MaxWait is -1s; it must be 0 (refuse at once) or more",
		"forebay: MaxWaiting is -3; it must be 0 (as many as leave within MaxWait) or more",
		"forebay: MaxHold is -4ns; it must be 0 (no watch) or more",
		"forebay: Observers[1] is nil; leave it out",
	}
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d mistakes, want %d:\n%v", len(lines), len(want), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("mistake %d is %q, want %q", i+1, lines[i], w)
		}
	}
	if errors.Is(err, ErrRejected) {
		t.Error("a mistake is not a refusal")
	}
}

func TestNewAcceptsTheBounds(t *testing.T) {
	long := strings.Repeat("n", 64)
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{Name: long, MaxInFlight: maxUnits, MaxWait: 24 * time.Hour, MaxWaiting: maxUnits}, ""},
		{Config{Name: "Az09-_./:", MaxInFlight: 1}, ""},
		{Config{Name: long + "n", MaxInFlight: 1}, "Name is"},
		{Config{Name: "größe", MaxInFlight: 1}, "Name is"},
		{Config{MaxInFlight: maxUnits + 1}, "MaxInFlight is 1048576; it must be at most 1048575"},
		{Config{MaxInFlight: 1, MaxWait: 24*time.Hour + 1}, "MaxWait is 24h0m0.000000001s; it must be at most 24h0m0s"},
		{Config{MaxInFlight: 1, MaxWait: 1, MaxWaiting: maxUnits + 1}, "MaxWaiting is 1048576; it must be at most 1048575"},
		{Config{MaxInFlight: 1, MaxWaiting: 1}, "MaxWaiting is 1 without a MaxWait; set MaxWait, or leave MaxWaiting 0 to refuse at once"},
	} {
		_, err := New(c.c)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "forebay: "+c.want) {
			t.Errorf("New(%+v): %v, want %q", c.c, err, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 3})
	if g.Name() != "gate" {
		t.Errorf("name %q", g.Name())
	}
	if st := g.Stats(); st.MaxWaiting != 0 {
		t.Errorf("%d may wait, want nobody", st.MaxWaiting)
	}
	g = gateOf(t, Config{MaxInFlight: 3, MaxWait: time.Second})
	for _, limit := range []int{3, 5, 1} { // follows the limit in force
		must(g.SetLimit(limit))
		if st := g.Stats(); st.MaxWaiting != 2*limit {
			t.Errorf("limit %d: %d may wait, want twice as many", limit, st.MaxWaiting)
		}
	}
}

// A gate keeps what it was told, not what the teller does with it later.
func TestConfigIsACopy(t *testing.T) {
	log, other := &eventLog{}, &eventLog{}
	observers := []Observer{log}
	g := gateOf(t, Config{MaxInFlight: 1, Observers: observers})
	observers[0] = other
	g.Config().Observers[0] = other
	take(t, g, 1).Release()
	if len(log.take()) != 2 || len(other.take()) != 0 {
		t.Error("the observers of a gate were changed from outside")
	}
}
