package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"example.com/forebay"
)

// gated puts the gates that the README proposes for the shop in front of it.
func gated(backend http.Handler) (http.Handler, error) {
	reports, err1 := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 2, MaxWait: 100 * time.Millisecond})
	orders, err2 := forebay.New(forebay.Config{Name: "orders", MaxInFlight: 12, MaxWait: 50 * time.Millisecond})
	admin, err3 := forebay.New(forebay.Config{Name: "admin", MaxInFlight: 2})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	groups, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "/health", Exempt: true},
		{Match: "/reports/", Gates: []*forebay.Gate{reports}},
		{Match: "/admin/", Gates: []*forebay.Gate{admin}},
		{Match: "/", Gates: []*forebay.Gate{orders}},
	}})
	if err != nil {
		return nil, err
	}
	return groups.Wrap(backend), nil
}

// serveGates runs the gates before a backend until its process is ended.
func serveGates(backend string) int {
	u, err := url.Parse(backend)
	if err != nil {
		return complain(err)
	}
	h, err := gated(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway) // who has left is not worth a line
		},
	})
	if err != nil {
		return complain(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return complain(err)
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	return complain(http.Serve(l, h))
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "measure:", err)
	return 1
}
