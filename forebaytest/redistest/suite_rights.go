package redistest

import (
	"context"
	"slices"
	"strings"

	"example.com/forebay/cluster"
)

var rightChecks = []check{
	{"a user with exactly the documented rights can do everything", leastRights},
	{"a user without one of them is told which", lackingRights},
	{"a user who may not ask who the server is", anonymous},
	{"a password that is missing or wrong", passwords},
	{"a command that is renamed", renamed},
	{"what an inspection finds", inspected},
}

// as returns where the server is, with another user.
func (s *Server) as(user string) Address {
	a := s.Address()
	a.User, a.Password = user, "secret"
	return a
}

// everything does all that a program does with a store.
func everything(r *rig, store Store) {
	r.Helper()
	a, b := r.instance(store, "g"), r.instance(store, "g")
	a.settle()
	for range 2 {
		a.want()
		a.must()
	}
	b.want()
	b.must()
	sub := r.subscribe(store, cluster.ChannelOf(b.next.Key, b.next.Instance))
	a.giveBack()
	a.must()
	sub.hear('g')
	sub.end()
	if st, err := store.Stats(r.Context(), a.next.Key); err != nil || len(st.Members) != 2 {
		r.Errorf("Stats: %+v, %v; want two members", st, err)
	}
	a.next.Leaving = true
	a.must()
	if seen, err := store.Inspect(r.Context(), clusterName); err != nil || len(seen.Missing) > 0 || seen.Anonymous {
		r.Errorf("Inspect: %+v, %v; want nothing missing", seen, err)
	}
}

func leastRights(r *rig) {
	s := Start(r, Config{})
	s.AddUser("gates", "secret", cluster.Rights(clusterName)...)
	everything(r, r.open(s.as("gates")))
	r.refusedNothing(s)
}

func lackingRights(r *rig) {
	s := Start(r, Config{})
	all := cluster.Rights(clusterName)
	for i, right := range all {
		r.sub(strings.Trim(right, "+~&:*"), func(r *rig) {
			s.Must("FLUSHALL")
			s.Must("SCRIPT", "FLUSH")
			s.AddUser("gates", "secret", slices.Delete(slices.Clone(all), i, i+1)...)
			named := right
			if strings.HasSuffix(right, ":*") {
				named = right[:1] + "NAME:*"
			}
			store := r.open(s.as("gates"))
			m := r.instance(store, "g")
			m.want()
			if err := m.tell(budget); err != nil {
				m.refused(err, named, s.Addr())
			} else if slices.Contains([]string{"+evalsha", "+eval", "+hmget", "+hset", "+del", "+pexpire", "+publish"}, right) || strings.HasSuffix(right, ":*") {
				r.Errorf("an exchange goes well without %s", right)
			}
			err := store.Subscribe(r.Context(), []string{"other:channel"}, func() {}, func(cluster.Message) {})
			m.refused(err)
			// Nor does it harm those who have it.
			good := r.instance(r.open(s.Address()), "g")
			epoch := good.must().Epoch
			_ = m.tell(budget)
			if got := good.must(); got.Epoch != epoch {
				r.Errorf("whoever lacks %s ends the epoch of all others", right)
			}
			if seen, err := store.Inspect(r.Context(), clusterName); err != nil || !slices.Contains(seen.Missing, named) {
				r.Errorf("Inspect: %+v, %v; want %s missing", seen, err, named)
			}
		})
	}
}

func anonymous(r *rig) {
	s := Start(r, Config{})
	rights := slices.DeleteFunc(cluster.Rights(clusterName), func(right string) bool { return right == "+info" })
	s.AddUser("gates", "secret", rights...)
	store := r.open(s.as("gates"))
	m := r.instance(store, "g")
	m.settle()
	m.want()
	if m.must(); m.held() != 1 {
		r.Errorf("it holds %d, want 1: %v", m.held(), m.last)
	}
	seen, err := store.Inspect(r.Context(), clusterName)
	if err != nil || !seen.Anonymous || seen.Server != "" || seen.Evicts != "" || !slices.Equal(seen.Missing, []string{"+info"}) {
		r.Errorf("Inspect: %+v, %v; want it anonymous, with +info missing", seen, err)
	}
}

func passwords(r *rig) {
	s := Start(r, Config{Password: "right"})
	none, wrong, stranger := s.Address(), s.Address(), s.as("nobody")
	none.Password, wrong.Password = "", "wrong"
	for _, c := range []struct {
		address Address
		word    string
	}{{none, "NOAUTH"}, {wrong, "WRONGPASS"}, {stranger, "WRONGPASS"}} {
		store := r.open(c.address)
		m := r.instance(store, "g")
		for range 2 {
			m.refused(m.tell(budget), c.word, "password", s.Addr())
		}
		err := store.Subscribe(r.Context(), []string{"a"}, func() { r.Errorf("it is subscribed") }, func(cluster.Message) {})
		m.refused(err, c.word)
		_, err = store.Inspect(r.Context(), clusterName)
		m.refused(err, c.word)
	}
	r.instance(r.open(s.Address()), "g").must()
}

func renamed(r *rig) {
	for _, command := range []string{"EVALSHA", "EVAL", "HMGET", "HSET"} {
		r.sub(command, func(r *rig) {
			s := Start(r, Config{Directives: []string{"rename-command " + command + " OTHER"}})
			m := r.instance(r.open(s.Address()), "g")
			m.refused(m.tell(budget), "renamed", s.Addr())
		})
	}
}

func inspected(r *rig) {
	s := Start(r, Config{Directives: []string{"maxmemory-policy allkeys-lru"}})
	store := r.open(s.Address())
	seen, err := store.Inspect(r.Context(), clusterName)
	if err != nil || seen.Evicts != "allkeys-lru" || seen.Server != "Redis "+s.Info("server")["redis_version"] ||
		seen.TooOld != "" || seen.Failover != "" || len(seen.Missing) > 0 {
		r.Errorf("a server that evicts: %+v, %v", seen, err)
	}
	if n := s.Must("DBSIZE"); n != int64(0) {
		r.Errorf("it leaves %v keys behind", n)
	}
	p := StartReplicated(r, ReplicatedConfig{Sentinels: -1})
	store = r.open(p.Servers[0].Address())
	if seen, err := store.Inspect(r.Context(), clusterName); err != nil || !strings.Contains(seen.Failover, "min-replicas-to-write") {
		r.Errorf("a replica that may be left behind: %+v, %v", seen, err)
	}
	p.Servers[0].Config("min-replicas-to-write", "1")
	until(r, "a replica that is in step", func() bool { return p.Servers[0].Info("replication")["min_slaves_good_slaves"] == "1" })
	if seen, err := store.Inspect(r.Context(), clusterName); err != nil || seen.Failover != "" {
		r.Errorf("with min-replicas-to-write: %+v, %v", seen, err)
	}
	ctx, stop := context.WithCancel(r.Context())
	stop()
	if _, err := store.Inspect(ctx, clusterName); err == nil {
		r.Errorf("with a context that is over it goes well")
	}
}

// refusedNothing fails the check if a server refused anything but what a client does
// without: what it sends as it ends a connection, and the question whether the server
// is a node of a Cluster.
func (r *rig) refusedNothing(s *Server) {
	r.Helper()
	log, _ := s.Must("ACL", "LOG").([]any)
	for _, entry := range log {
		if e := fields(entry); !slices.Contains([]string{"ping", "discard", "unsubscribe", "punsubscribe", "sunsubscribe", "cluster|slots"}, e["object"]) {
			r.Errorf("the server refused something: %v", e)
		}
	}
}
