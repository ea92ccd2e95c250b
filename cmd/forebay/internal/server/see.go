package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
)

// see looks at the gates once a second, until ctx ends.
func (s *Server) see(ctx context.Context) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-each.C:
			s.book.Tick(now)
		}
	}
}

// answered notes what clients were told: of refusals, and of requests that their clients
// call something else.
func (s *Server) answered(r *http.Request, answer http.Header, status int) {
	id, asked := proxy.IDs(r)
	if asked == "" && answer["Proxy-Status"] == nil {
		return
	}
	retry, _ := strconv.Atoi(answer.Get("Retry-After")) // an upstream's may be a date
	s.book.Answered(id, asked, status, retry)
}

// Stories are what became of calls.
func (s *Server) Stories() *story.Book { return s.book }

// routes are the gates that each route names.
func (st *state) routes() map[string][]string {
	all := make(map[string][]string, len(st.cfg.Routes))
	for _, r := range st.cfg.Routes {
		all[r.Match] = r.Gates
	}
	return all
}
