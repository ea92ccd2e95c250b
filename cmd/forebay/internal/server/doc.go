// Package server is the running program: it stands in front of one upstream, behind
// its gates, reloads its configuration, and goes away in good order.
//
//	s, err := server.New(server.Options{Load: load, Version: version})
//	…
//	code := s.Run(ctx)
//
// A request's way: the caller's address and the request's id are made out
// (the proxy's Identify), the time is taken, the route is found and its gates passed
// ([forebay.Groups]), and the proxy, or the health handler, answers. A reload builds
// a new [state] around the same gates and swaps it in; requests under way end in the
// one they began in.
package server
