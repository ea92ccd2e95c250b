package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/proxy"
)

// A gate in front of a backend, and what came of each request.
func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.URL.Path, r.Header.Get("X-Forwarded-For"))
	}))
	defer backend.Close()
	upstream, _ := url.Parse(backend.URL)

	gate, err := forebay.New(forebay.Config{Name: "shop", MaxInFlight: 12})
	if err != nil {
		panic(err)
	}
	p := proxy.New(proxy.Config{
		Upstream:    upstream,
		IdlePerHost: 12,
		Done:        func(r proxy.Result) { fmt.Println(r.Status, r.Outcome, r.Bytes, r.Err) },
	})
	defer p.Close()
	front := httptest.NewUnstartedServer(nil)
	front.Config = proxy.Server(p.Identify(gate.Wrap(p)), proxy.Timeouts{})
	front.Start()
	defer front.Close()

	res, err := http.Get(front.URL + "/orders")
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	fmt.Println(string(body))
	// Output:
	// 200 done 21 <nil>
	// /orders for 127.0.0.1
}
