package redistest

import (
	"slices"

	"example.com/forebay/cluster"
)

var failoverChecks = []check{
	{"a failover that is asked for", plannedFailover},
	{"RC-20 a replica that missed exchanges is found out", staleFailover},
	{"a primary that is frozen for good", frozenPrimary},
	{"Sentinels with the documented rights", sentinelRights},
	{"Sentinels with a password, over TLS", secureSentinels},
}

func plannedFailover(r *rig) {
	p := StartReplicated(r, ReplicatedConfig{Config: Config{Password: "secret"}})
	store := r.open(p.Address())
	m := r.instance(store, "g")
	m.settle()
	m.want()
	m.must()
	epoch := m.last.Epoch
	sub := r.subscribe(store, m.next.Key)
	p.Failover()
	// The old primary may answer until it is told that it is none.
	until(r, "another epoch", func() bool { return m.soon().Epoch != epoch })
	if got := m.last; got.Epoch < epoch || m.held() != 1 || got.Learning == 0 {
		r.Errorf("at the new primary: %v, it holds %d; want a later epoch than %d that learns, and its unit", got, m.held(), epoch)
	}
	m.away(sub.lost())
	sub = r.subscribe(store, m.next.Key)
	m.next.Override = cluster.Override{Version: 1, Limit: 7}
	m.soon()
	sub.hear('l')
}

func staleFailover(r *rig) {
	p := StartReplicated(r, ReplicatedConfig{})
	primary, replica := p.Servers[0], p.Servers[1]
	m := r.instance(r.open(p.Address()), "g")
	m.settle()
	until(r, "the ledger at the replica", func() bool { return replica.Must("EXISTS", m.next.Key) == int64(1) })
	p.Detach(replica)
	epoch := m.last.Epoch
	for range 2 {
		m.want()
		m.must()
	}
	primary.Kill()
	p.AwaitFailover(primary)
	other := r.instance(r.open(p.Address()), "g")
	other.want()
	if got := other.soon(); other.held() != 0 || got.Epoch <= epoch || got.Learning == 0 {
		r.Errorf("a newcomer at a replica that knows nothing of what is lent holds %d: %v", other.held(), got)
	}
	if got := m.soon(); m.held() != 2 || got.Lost != 0 {
		r.Errorf("whoever held 2 holds %d, %d lost", m.held(), got.Lost)
	}
}

func frozenPrimary(r *rig) {
	p := StartReplicated(r, ReplicatedConfig{})
	store := r.open(p.Address())
	m := r.instance(store, "g")
	m.must()
	sub := r.subscribe(store, m.next.Key)
	primary := p.Servers[0]
	primary.Freeze()
	p.AwaitFailover(primary)
	m.soon()
	// Its connection to the frozen server stands, and nothing will ever come over it.
	m.away(sub.lost())
	sub = r.subscribe(store, m.next.Key)
	m.next.Override = cluster.Override{Version: 1, Limit: 7}
	m.soon()
	sub.hear('l')
}

func sentinelRights(r *rig) {
	p := StartReplicated(r, ReplicatedConfig{})
	for _, s := range p.Servers {
		s.AddUser("gates", "secret", slices.Concat(cluster.Rights(clusterName), r.Opener.Sentinel)...)
	}
	a := p.Address()
	a.User, a.Password = "gates", "secret"
	everything(r, r.open(a))
	r.refusedNothing(p.Servers[0])
}

func secureSentinels(r *rig) {
	p := StartReplicated(r, ReplicatedConfig{Config: Config{TLS: true, Password: "secret"}, SentinelPassword: "other"})
	everything(r, r.open(p.Address()))
	a := p.Address()
	a.SentinelPassword = "wrong"
	m := r.instance(r.open(a), "g")
	m.refused(m.tell(budget), "WRONGPASS")
}
