package forebay

import (
	"net/http"
	"strconv"
	"strings"
)

// Header values of refusals for gRPC.
var (
	headerGRPC          = []string{"application/grpc"}
	headerGRPCExhausted = []string{"8"} // RESOURCE_EXHAUSTED
	headerGRPCNever     = []string{"-1"}
)

// isGRPC reports whether a request speaks gRPC, or gRPC-Web.
func isGRPC(r *http.Request) bool {
	const name = "application/grpc"
	if r.Method != http.MethodPost {
		return false
	}
	t := r.Header["Content-Type"]
	return len(t) == 1 && len(t[0]) >= len(name) && strings.EqualFold(t[0][:len(name)], name) &&
		(len(t[0]) == len(name) || strings.IndexByte("+-; ", t[0][len(name)]) >= 0)
}

// refuseGRPC makes the headers those of a call that ended with RESOURCE_EXHAUSTED
// before any message: the trailers of gRPC come as headers then. An ordinary 503 would
// be taken for UNAVAILABLE, a server that is down, and 413 for UNKNOWN. The client is
// told when to come back, in milliseconds, or that it need not.
func (p *page) refuseGRPC(h http.Header, r *http.Request, retry int) {
	h["Content-Type"] = headerGRPC
	if t := r.Header["Content-Type"][0]; len(t) > len("application/grpc") && t[len("application/grpc")] == '-' {
		h["Content-Type"] = []string{t} // gRPC-Web: as it was asked, since text and binary differ
	}
	h["Grpc-Status"] = headerGRPCExhausted
	h["Grpc-Message"] = p.grpc
	h["Grpc-Retry-Pushback-Ms"] = headerGRPCNever
	if retry > 0 {
		h["Grpc-Retry-Pushback-Ms"] = []string{strconv.Itoa(retry * 1000)}
	}
}
