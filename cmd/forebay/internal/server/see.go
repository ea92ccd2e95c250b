package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// observers are told of what all gates do.
func (s *Server) observers() []forebay.Observer {
	return []forebay.Observer{s.log.Observer(), s.metrics.Gates, s.book, s.seen}
}

// watchGates tells those who look at the gates of a state which ones there are.
func (s *Server) watchGates(st *state) {
	s.book.Watch(st.routes, st.gates...)
	s.seen.Watch(st.gates...)
}

// routesOf are the gates that each route names.
func routesOf(cfg *config.Config) map[string][]string {
	all := make(map[string][]string, len(cfg.Routes))
	for _, r := range cfg.Routes {
		all[r.Match] = r.Gates
	}
	return all
}

// see looks at the gates once a second, until ctx ends.
func (s *Server) see(ctx context.Context) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	var cpu cpuMeter
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-each.C:
			s.book.Tick(now)
			s.say(s.seen.Tick(cpu.busy()))
		}
	}
}

// say logs what has changed about the gates: once when it begins, once when it is over.
func (s *Server) say(changes []verdict.Change) {
	for _, c := range changes {
		switch {
		case c.WaitsLong && c.Over:
			s.logger().Info("calls do not wait for long any more", "gate", c.Gate)
		case c.WaitsLong:
			s.logger().Warn("calls wait for long", "gate", c.Gate, "text", c.Text)
		case c.Over:
			s.logger().Info("verdict is over", "gate", c.Gate, "verdict", c.Verdict.Verdict)
		default:
			s.logger().Warn("verdict", "gate", c.Gate, "verdict", c.Verdict.Verdict, "text", c.Text, "remedy", c.Remedy)
		}
	}
}

// cpuMeter says how busy this host's processors were since the last time. The zero value
// is ready.
type cpuMeter struct{ worked, passed float64 }

// busy is 0 to 1; below 0: it is not known.
func (m *cpuMeter) busy() float64 {
	worked, passed, ok := cpuTime()
	if !ok {
		return -1
	}
	before := *m
	*m = cpuMeter{worked, passed}
	if before.passed == 0 || passed <= before.passed {
		return -1
	}
	return min(1, max(0, (worked-before.worked)/(passed-before.passed)))
}

// answered notes what clients were told: of refusals, and of requests that their clients
// call something else.
func (s *Server) answered(r *http.Request, answer http.Header, status int) {
	id, asked := proxy.IDs(r)
	refused := answer["Proxy-Status"] != nil
	if asked == "" && !refused {
		return
	}
	retry, _ := strconv.Atoi(answer.Get("Retry-After")) // an upstream's may be a date
	if refused && retry > 0 {
		s.retries.tell(r, time.Duration(retry)*time.Second)
	}
	s.book.Answered(id, asked, status, retry)
}

// Stories are what became of calls.
func (s *Server) Stories() *story.Book { return s.book }

// Seen is what is known of the gates, and wrong with them.
func (s *Server) Seen() *verdict.Recorder { return s.seen }
