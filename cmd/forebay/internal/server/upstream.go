package server

import (
	"errors"
	"net/http"
	"strings"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/telemetry"
)

// ended logs a request that was admitted and did not get its whole answer. All
// kinds can come in storms, so each makes ten lines a second at most.
func (s *Server) ended(r proxy.Result) {
	switch {
	case r.Over != nil && s.Config().Log.Decisions != telemetry.DecisionsOff:
		s.log.Paced().Info("a stream was ended by the rules of its gate",
			"request_id", idOf(r.Request), "why", strings.TrimPrefix(r.Over.Error(), forebay.ErrStreamOver.Error()+": "))
	case r.Err == nil || r.Status == 0: // a panic is logged where it ends
	case errors.Is(r.Err, proxy.ErrDeadline) && s.Config().Log.Decisions != telemetry.DecisionsOff:
		s.log.Paced().Info("the caller's own deadline has passed", "status", r.Status,
			"request_id", idOf(r.Request), "upstream_ms", r.Upstream.Milliseconds())
	case errors.Is(r.Err, proxy.ErrDeadline):
	case r.Status != forebay.StatusClientClosedRequest:
		s.log.Paced().Warn("the upstream did not answer as it should", "status", r.Status,
			"request_id", idOf(r.Request), "upstream_ms", r.Upstream.Milliseconds(), "error", r.Err.Error())
	case s.Config().Log.Decisions != telemetry.DecisionsOff:
		s.log.Paced().Info("the caller left", "status", r.Status,
			"request_id", idOf(r.Request), "upstream_ms", r.Upstream.Milliseconds())
	}
}

// idOf returns the id of a request that the proxy has identified.
func idOf(r *http.Request) string { return r.Header.Get("X-Request-Id") }
