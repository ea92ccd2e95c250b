package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestPerCallerByHeader: what a trusted proxy says of its callers bounds them, and
// neither a stranger's word nor a spelling of it does.
func TestPerCallerByHeader(t *testing.T) {
	const gates = "gates: {a: {max_in_flight: 9, per_caller: {max_in_flight: 1, by: {header: X-Company}}}}\nroutes: [{match: /, gate: a}]\n"
	r := start(t, "trusted_proxies: [127.0.0.1]\n"+gates)
	hold := make(chan reply, 1)
	go func() { hold <- r.get("/hold", "X-Company", "acme") }()
	r.gateIs("a", 1, 0)
	for _, c := range []struct {
		name, headers string
		status        string
		told          string // of the company, to the backend
	}{
		{"the same", "X-Company: acme\r\n", "429", ""},
		{"the last line", "X-Company: other\r\nX-Company: acme\r\n", "429", ""},
		{"another", "X-Company: other\r\n", "200", `"X-Company":["other"]`},
		{"another, last", "X-Company: acme\r\nX-Company: other\r\n", "200", `"X-Company":["other"]`},
		{"named hop by hop", "X-Company: other\r\nConnection: X-Company\r\n", "200", `"X-Company":["other"]`},
		{"disguised", "X_Company: acme\r\n", "200", ""},
	} {
		got, _ := r.raw("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + c.headers + "\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || !strings.Contains(got, c.told) || c.told == "" && strings.Contains(strings.ToLower(got), "company") {
			t.Errorf("%s: %s\nwant %s, told %s", c.name, got, c.status, c.told)
		}
	}
	r.logged(`"decision":"rejected_caller"`)
	if n := r.scrape(`forebay_callers{gate="a"}`); n != "1" {
		t.Errorf("forebay_callers is %q", n)
	}
	if got := r.ask("GET", "/health", ""); !strings.Contains(got.body, `"status":"ok"`) {
		t.Errorf("one caller has too much, and the health is %s", got.body)
	}
	r.letGo(1)
	if got := <-hold; got.status != 200 {
		t.Errorf("%+v", got)
	}
	// Of a stranger it is not taken, and not handed on.
	r.reload(gates)
	go func() { hold <- r.get("/hold", "X-Company", "acme") }()
	r.gateIs("a", 1, 0)
	if got := r.get("/x", "X-Company", "other"); got.status != 429 {
		t.Errorf("a stranger chose who he is: %+v", got)
	}
	r.letGo(1)
	<-hold
	if got := r.get("/x", "X-Company", "other"); got.status != 200 || strings.Contains(got.body, "Company") {
		t.Errorf("a stranger's header went on: %+v", got)
	}
}

// TestKR04ZonesMakeNoCallers: a zone names an interface of the host that wrote it, and is no
// part of who calls: one caller with a thousand of them is one, in X-Forwarded-For and in
// Forwarded, and neither the upstream nor the log is told of one.
func TestKR04ZonesMakeNoCallers(t *testing.T) {
	for header, say := range map[string]string{"X-Forwarded-For": "%s", "Forwarded": `for="[%s]"`} {
		r := start(t, "trusted_proxies: [127.0.0.1]\ncaller: {header: "+header+"}\n"+
			"gates: {a: {max_in_flight: 9, per_caller: {max_in_flight: 1}}}\nroutes: [{match: /, gate: a}]\n")
		hold := make(chan reply, 1)
		go func() { hold <- r.get("/hold", header, fmt.Sprintf(say, "fe80::1%eth0")) }()
		r.gateIs("a", 1, 0)
		for _, zone := range []string{"", "%eth0", "%eth1", "%1", "%25eth0", "%" + strings.Repeat("x", 1000), "%a;b", "%..", "%[", "%%%"} {
			addr := "fe80::1" + zone
			if got := r.get("/x", header, fmt.Sprintf(say, addr)); got.status != 429 {
				t.Errorf("%s of %.40s: %d, want 429", header, addr, got.status)
			}
		}
		if n := r.scrape(`forebay_callers{gate="a"}`); n != "1" {
			t.Errorf("%s: forebay_callers is %q", header, n)
		}
		r.letGo(1)
		<-hold
		got := r.get("/x", header, fmt.Sprintf(say, "fe80::1%eth0"))
		if got.status != 200 {
			t.Errorf("%s: afterwards %d", header, got.status)
		}
		line := r.logged(`"decision":"rejected_caller"`)
		if !strings.Contains(line, `"remote_ip":"fe80::"`) {
			t.Errorf("%s: the log says %s", header, line)
		}
	}
}

// TestKR10BrowserOverOneConnection: a page with a hundred pictures loads whole, ten at a
// time.
func TestKR10BrowserOverOneConnection(t *testing.T) {
	r := start(t, "gates: {a: {max_in_flight: 50, max_wait: 1m, max_waiting: 200, per_caller: {max_in_flight: 10}}}\nroutes: [{match: /, gate: a}]\n")
	tr := &http.Transport{DialContext: guarded, Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			res, err := tr.RoundTrip(mustRequest(fmt.Sprintf("%s/hold/%d", r.data, i)))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 200 || res.ProtoMajor != 2 {
				t.Errorf("picture %d: %s over %s", i, res.Status, res.Proto)
			}
		})
	}
	r.gateIs("a", 10, 90)
	eventually(t, "ten run in the backend", func() bool { return r.backend.running.Load() == 10 })
	r.letGo(100)
	all.Wait()
	if most := r.backend.most.Load(); most != 10 {
		t.Errorf("%d ran at once, want 10", most)
	}
}

func mustRequest(url string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return req
}
