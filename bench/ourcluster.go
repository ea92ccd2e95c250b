package main

import (
	"context"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/contrib/goredisstore"
	"example.com/forebay/contrib/redisstore"
)

// Names of our rows.
const (
	ourCluster  = "forebay"
	ourUncached = "forebay, no idle slots"
	ourGoRedis  = "forebay, no idle slots, go-redis"
)

// heartbeat is how often an instance says that it lives, at the default lease of 2 s.
const heartbeat = 500 * time.Millisecond

// form is how a gate of ours is set up.
type form struct {
	idleHold time.Duration
	goRedis  bool
	track    bool
}

// The forms. Returning keeps no idle slot.
var (
	ordinary         = form{}
	returning        = form{idleHold: -1}
	returningGoRedis = form{idleHold: -1, goRedis: true}
)

// clusterContender is forebay in one of its forms.
func clusterContender(name string, f form) *contender {
	return &contender{
		name: name, kind: ours, commands: []string{"evalsha", "eval"},
		open: func(s setup) (*field, error) { return openCluster(f, s) },
	}
}

func openCluster(form form, s setup) (*field, error) {
	f := &field{}
	var members []*member
	f.close = func() {
		for _, m := range members {
			m.close()
		}
	}
	for range s.instances {
		m, err := openMember(form, s)
		if err != nil {
			f.close()
			return nil, err
		}
		members = append(members, m)
		f.acquire = append(f.acquire, m.acquire)
	}
	for _, m := range members {
		if err := m.join(); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// member is one instance of a cluster with one gate.
type member struct {
	gate    *forebay.Gate
	cluster *cluster.Cluster
	store   interface {
		cluster.Store
		Close()
	}
}

func openMember(form form, s setup) (m *member, err error) {
	m = &member{}
	if form.goRedis {
		m.store, err = goredisstore.Dial(lab().URL())
	} else {
		m.store, err = redisstore.Dial(lab().URL())
	}
	if err != nil {
		return nil, err
	}
	m.cluster, err = cluster.New(cluster.Config{Store: m.store, Name: s.key, Terms: cluster.Terms{IdleHold: form.idleHold}})
	if err != nil {
		m.store.Close()
		return nil, err
	}
	m.gate, err = forebay.New(forebay.Config{
		Name: "gate", MaxInFlight: s.limit, MaxWait: longPatience, MaxWaiting: 2*s.callers + 2, Track: form.track, Cluster: m.cluster,
	})
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// join waits until the instance shares the limit, so that all are known before
// anything is measured. One that the store does not answer in time at its start refuses,
// as it cannot know what its share is.
func (m *member) join() (err error) {
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		var release func()
		if release, err = m.acquire(context.Background()); err == nil {
			release()
			return nil
		}
	}
	return err
}

func (m *member) acquire(ctx context.Context) (func(), error) {
	lease, err := m.gate.Acquire(ctx, forebay.Call{})
	if err != nil {
		return nil, err
	}
	return func() { lease.Release() }, nil
}

func (m *member) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = m.cluster.Close(ctx)
	m.store.Close()
}
