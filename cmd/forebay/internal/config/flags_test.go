package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFromFlags(t *testing.T) {
	c, err := FromFlags(Flags{Upstream: "http://127.0.0.1:8000", Listen: ":9000", MaxInFlight: "16", MaxWait: "100ms", MaxWaiting: "8"})
	if err != nil {
		t.Fatal(err)
	}
	g := c.Gate(DefaultGate)
	if g == nil || g.MaxInFlight != 16 || g.MaxWait != 100*time.Millisecond || g.MaxWaiting != 8 || !g.Track {
		t.Errorf("the gate is %+v", g)
	}
	if c.Listen.Address != ":9000" || c.Admin.Address != DefaultAdmin || c.Path != "" || c.Hash != "" {
		t.Errorf("Listen, Admin, Path, Hash = %v, %v, %q, %q", c.Listen, c.Admin, c.Path, c.Hash)
	}
	gates, groups, err := c.Build()
	if err != nil || groups == nil || gates.Get(DefaultGate) == nil {
		t.Errorf("Build: %v", err)
	}
	mustParse(t, c.YAML())
	if c, err = FromFlags(Flags{Upstream: "unix:/run/x.sock", MaxInFlight: "closed", MaxWait: "0"}); err != nil || !c.Gates[0].Closed {
		t.Errorf("closed: %v", err)
	}
}

// TestFlagMistakesComeTogether: named by their flags, in the order of the flags.
func TestFlagMistakesComeTogether(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		want  []string
	}{
		{Flags{}, []string{"--upstream: it is missing; ", "--max-in-flight: it is missing; "}},
		{Flags{Upstream: "127.0.0.1:8000", Listen: "8080", Admin: "x", MaxInFlight: "010", MaxWait: "100", MaxWaiting: "0"}, []string{
			"--upstream: is 127.0.0.1:8000, without a scheme; write http://127.0.0.1:8000",
			"--listen: is 8080, a port without an address; ",
			"--admin: is x, ",
			"--max-in-flight: is 010, which some readers take as octal; write 10",
			"--max-wait: is 100, a number without a unit; ",
			"--max-waiting: is 0, ",
		}},
		{Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "1", MaxWaiting: "5"}, []string{"--max-waiting: it is given without --max-wait"}},
		{Flags{Upstream: "http://127.0.0.1:8080", MaxInFlight: "1"}, []string{"--upstream: upstream is http://127.0.0.1:8080, where listen is"}},
		{Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "1", Admin: "0.0.0.0:9001"}, []string{"--admin: admin is open to strangers"}},
		{Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "1", Listen: ":8081"}, []string{"--admin: listen is :8081 and admin is 127.0.0.1:8081"}},
		{Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "otto"}, []string{"--max-in-flight: is otto; did you mean auto?"}},
	} {
		_, err := FromFlags(c.flags)
		var ps Problems
		if !errors.As(err, &ps) {
			t.Errorf("%+v: %v", c.flags, err)
			continue
		}
		if len(ps) != len(c.want) {
			t.Errorf("%+v: %d problems, want %d:\n%v", c.flags, len(ps), len(c.want), err)
			continue
		}
		for i, p := range ps {
			if !strings.HasPrefix(p.String(), c.want[i]) {
				t.Errorf("%+v: %q, want %q", c.flags, p, c.want[i])
			}
		}
	}
}
