package redistest

import "strconv"

// state is one that a server can be in for a while.
type state struct {
	name  string
	enter func(s *Server)
	leave func(s *Server)
	words []string // what the error says
}

// states are those in which a server is asked and cannot serve.
var states = []state{
	{"full", set("maxmemory", "1"), set("maxmemory", "0"), []string{"OOM", "raise maxmemory"}},
	{"without enough replicas", set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0"), []string{"NOREPLICAS", "min-replicas-to-write"}},
	{"a replica", demote, promote, []string{"READONLY", "replica"}},
	{"a replica without its primary", func(s *Server) { set("replica-serve-stale-data", "no")(s); demote(s) }, promote, []string{"MASTERDOWN", "primary"}},
	{"reading its data", load, func(*Server) {}, []string{"LOADING"}},
	{"busy with a script", hang, endHang, []string{"BUSY", "SCRIPT KILL"}},
}

func set(name, value string) func(*Server) {
	return func(s *Server) { s.Config(name, value) }
}

func demote(s *Server)  { s.Must("REPLICAOF", host, strconv.Itoa(freePort(s.t))) }
func promote(s *Server) { s.Must("REPLICAOF", "NO", "ONE") }

// load restarts the server with data that take seconds to read.
func load(s *Server) {
	s.Must("DEBUG", "POPULATE", "1500")
	s.Must("SAVE")
	s.Kill()
	s.append("key-load-delay 1000\nloading-process-events-interval-bytes 1024\n")
	s.RestartUnready()
	until(s.t, "a server that reads its data", func() bool {
		_, err := s.Do("PING")
		return err != nil && ServerError(err.Error()).is("LOADING")
	})
}

// hang keeps the server busy with a script that does not end.
func hang(s *Server) {
	s.Config("busy-reply-threshold", "1")
	go func() { _, _ = s.Do("EVAL", "while true do end", "0") }()
	until(s.t, "a server that is busy", func() bool {
		_, err := s.Do("PING")
		return err != nil && ServerError(err.Error()).is("BUSY")
	})
}

func endHang(s *Server) { s.Must("SCRIPT", "KILL") }

var stateChecks = []check{
	{"RC-19 a server that cannot serve for the moment is away", cannotServe},
	{"a server that is not there yet", notThereYet},
	{"a server that has too many connections", tooMany},
	{"a server that pauses", pauses},
}

func cannotServe(r *rig) {
	for _, st := range states {
		r.sub(st.name, func(r *rig) {
			s := Start(r, Config{Directives: []string{"enable-debug-command yes"}})
			m := r.instance(r.open(s.Address()), "g")
			m.must()
			st.enter(s)
			m.away(m.tell(budget), s.Addr()) // over a connection that may be lost by now
			m.away(m.tell(budget), append(st.words, s.Addr())...)
			// Nor does a store that has known no other.
			m.away(r.instance(r.open(s.Address()), "g").tell(budget), st.words...)
			st.leave(s)
			m.soon()
		})
	}
}

func notThereYet(r *rig) {
	s := Start(r, Config{})
	s.Kill()
	store := r.open(s.Address())
	m := r.instance(store, "g")
	for range 3 {
		m.away(m.tell(budget), s.Addr(), "refused")
	}
	if _, err := store.Stats(r.Context(), m.next.Key); err == nil {
		r.Errorf("Stats of a server that is not there goes well")
	} else {
		m.away(err, s.Addr())
	}
	if _, err := store.Inspect(r.Context(), clusterName); err == nil {
		r.Errorf("Inspect of a server that is not there goes well")
	} else {
		m.away(err, s.Addr())
	}
	s.Restart()
	m.soon()
}

func tooMany(r *rig) {
	s := Start(r, Config{})
	s.Config("maxclients", "1")
	var hold []*conn
	for {
		c, err := s.dial()
		if err != nil {
			r.Fatalf("%v", err)
		}
		hold = append(hold, c)
		if _, err := c.do([]string{"PING"}); err != nil {
			break // this one was too many
		}
	}
	m := r.instance(r.open(s.Address()), "g")
	m.away(m.tell(budget))
	for _, c := range hold {
		_ = c.Close()
	}
	m.soon()
}

func pauses(r *rig) {
	s := Start(r, Config{})
	m := r.instance(r.open(s.Address()), "g")
	m.must()
	s.Must("CLIENT", "PAUSE", "100000", "ALL")
	for range 3 {
		m.away(m.tell(short), "not answered in the time")
	}
	s.Kill() // a paused server takes no command that would end it
	s.Restart()
	m.soon()
}
