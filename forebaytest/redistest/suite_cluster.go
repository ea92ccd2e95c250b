package redistest

import (
	"fmt"
	"slices"

	"example.com/forebay/cluster"
)

var clusterChecks = []check{
	{"RC-09 gates on every node of a Cluster", everyNode},
	{"a slot that moves to another node", movingSlot},
	{"a Cluster that is not whole", brokenCluster},
	{"a Cluster with the documented rights", clusterRights},
	{"a Cluster over TLS", secureCluster},
}

func everyNode(r *rig) {
	k := StartCluster(r, ClusterConfig{})
	store := r.open(k.Address())
	nodes := map[*Server]bool{}
	for i := range 30 {
		name := []string{"gate %d", "{gate} %d", "}%d{", "%%7B%d"}[i%4]
		m := r.instance(store, fmt.Sprintf(name, i))
		m.must()
		sub := r.subscribe(store, m.next.Key)
		m.next.Override = cluster.Override{Version: 1, Limit: 10 + i}
		m.must()
		if news := sub.hear('l'); news.Count != 10+i {
			r.Errorf("gate %d: it hears of a limit of %d, want %d", i, news.Count, 10+i)
		}
		sub.end()
		owner := k.Owner(m.next.Key)
		nodes[owner] = true
		before := k.counts()
		m.must()
		for n, was := range before {
			if sent := n.Counts().Since(was)["evalsha"]; n != owner && sent.Calls+sent.Failed > 0 {
				r.Errorf("gate %d: a node that has not its key was asked", i)
			}
		}
	}
	if len(nodes) != len(k.Nodes) {
		r.Errorf("the gates lie on %d of %d nodes", len(nodes), len(k.Nodes))
	}
}

func movingSlot(r *rig) {
	k := StartCluster(r, ClusterConfig{})
	store := r.open(k.Address())
	m := r.instance(store, "g")
	m.settle()
	m.want()
	m.must()
	sub := r.subscribe(store, m.next.Key)
	for range 2 {
		from := k.Owner(m.next.Key)
		to := k.Nodes[(slices.Index(k.Nodes, from)+1)%len(k.Nodes)]
		k.Move(m.next.Key, to, func() {
			if m.must(); m.held() != 1 {
				r.Errorf("midway it holds %d, want 1", m.held())
			}
		})
		if m.must(); m.held() != 1 || m.last.Lost != 0 {
			r.Errorf("afterwards it holds %d, %d lost; want 1", m.held(), m.last.Lost)
		}
	}
	sub.end()
	sub = r.subscribe(store, m.next.Key)
	m.next.Override = cluster.Override{Version: 1, Limit: 7}
	m.must()
	sub.hear('l')
}

func brokenCluster(r *rig) {
	k := StartCluster(r, ClusterConfig{Config: Config{Directives: []string{"cluster-node-timeout 1000"}}})
	m := r.instance(r.open(k.Address()), "g")
	m.must()
	owner := k.Owner(m.next.Key)
	other := k.Nodes[(slices.Index(k.Nodes, owner)+1)%len(k.Nodes)]
	other.Kill()
	until(r, "a cluster that knows that it is not whole", func() bool {
		_, err := owner.Do("GET", m.next.Key)
		return err != nil && ServerError(err.Error()).is("CLUSTERDOWN")
	})
	m.away(m.tell(budget), "CLUSTERDOWN", "not whole")
	other.Restart()
	m.soon()
}

func clusterRights(r *rig) {
	k := StartCluster(r, ClusterConfig{})
	for _, s := range k.Nodes {
		s.AddUser("gates", "secret", slices.Concat(cluster.Rights(clusterName), r.Opener.Cluster)...)
	}
	a := k.Address()
	a.User, a.Password = "gates", "secret"
	store := r.open(a)
	everything(r, store)
	key := cluster.KeyOf(clusterName, "g")
	from := k.Owner(key)
	m := r.instance(store, "g")
	k.Move(key, k.Nodes[(slices.Index(k.Nodes, from)+1)%len(k.Nodes)], func() { m.must() })
	m.must()
	for _, s := range k.Nodes {
		r.refusedNothing(s)
	}
}

func secureCluster(r *rig) {
	k := StartCluster(r, ClusterConfig{Config: Config{TLS: true}})
	everything(r, r.open(k.Address()))
}

// counts returns what each node has executed.
func (k *Cluster) counts() map[*Server]Counts {
	k.t.Helper()
	all := map[*Server]Counts{}
	for _, n := range k.Nodes {
		all[n] = n.Counts()
	}
	return all
}
