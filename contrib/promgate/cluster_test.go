package promgate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/contrib/promgate"
	"example.com/forebay/internal/feed"
)

// picture is a cluster that shows what a test says.
type picture struct{ feed.Stats }

func (p *picture) Attach(feed.Gate) (feed.Supplier, error) { return supplier{p}, nil }

type supplier struct{ picture *picture }

func (supplier) Poke()                       {}
func (supplier) SetLimit(int, time.Duration) {}
func (supplier) Configured(int)              {}
func (s supplier) Stats() feed.Stats         { return s.picture.Stats }

func TestClusteredGate(t *testing.T) {
	p := &picture{feed.Stats{
		Mode: "share", Epoch: 1_700_000_000_000, Limit: 20, Held: 21, InUse: 12, Over: 1, Waiting: 7, Reclaimed: 3, Lost: 2,
		Lapses: 5, Exchanges: 100, Failures: 6, Learning: 1500 * time.Millisecond,
		Instances: []feed.Instance{{ID: "a", Held: 8}, {ID: "b", Held: 13, Self: true}},
	}}
	m := promgate.New(promgate.Config{})
	if err := m.Watch(newGate(t, m, forebay.Config{Name: "reports", MaxInFlight: 20, Cluster: p}), newGate(t, m, forebay.Config{Name: "alone", MaxInFlight: 1})); err != nil {
		t.Fatal(err)
	}
	all := gather(t, m)
	for name, want := range map[string]float64{
		"limit": 20, "held": 21, "held_here": 13, "in_use": 12, "over": 1, "waiting": 7, "instances": 2, "epoch": 1_700_000_000_000,
		"learning_seconds": 1.5, "exchanges_total": 100, "failures_total": 6, "reclaimed_total": 3, "lost_total": 2, "lapses_total": 5,
	} {
		wantValue(t, all, want, "forebay_cluster_"+name, "gate", "reports")
		if n := len(all["forebay_cluster_"+name]); n != 1 {
			t.Errorf("forebay_cluster_%s has %d series, want that of the gate with a cluster", name, n)
		}
	}
	for _, mode := range []string{"normal", "learning", "joining", "share", "open", "closed"} {
		want := 0.0
		if mode == "share" {
			want = 1
		}
		wantValue(t, all, want, "forebay_cluster_mode", "mode", mode)
	}
}

// failing is a store that is away.
type failing struct{ cluster.Store }

func (failing) Exchange(context.Context, *cluster.Request) (cluster.Reply, error) {
	return cluster.Reply{}, errors.New("away")
}

func TestExchangesAreMeasured(t *testing.T) {
	m := promgate.New(promgate.Config{})
	s := m.Exchanges(failing{})
	for range 3 {
		if _, err := s.Exchange(t.Context(), &cluster.Request{Key: cluster.KeyOf("shop", "a.b/c:d")}); err == nil {
			t.Error("the store's error is lost")
		}
	}
	wantValue(t, gather(t, m), 3, "forebay_cluster_exchange_seconds", "gate", "a.b/c:d")
}
