package forebay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a gate costs a request that it admits, and one that it refuses.
func BenchmarkWrap(b *testing.B) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	get := httptest.NewRequest("GET", "/", nil)
	post := httptest.NewRequest("POST", "/", strings.NewReader("body"))
	bare := httpGate(b, Config{MaxInFlight: 8, MaxWait: 1})
	observed := httpGate(b, Config{MaxInFlight: 8, MaxWait: 1, Observers: []Observer{ObserverFunc(func(Event) {})}})
	full := httpGate(b, Config{MaxInFlight: 1})
	occupy(b, full)
	groups, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/", Gates: []*Gate{bare}}}})
	must(err)
	for _, c := range []struct {
		name string
		h    http.Handler
		r    *http.Request
	}{
		{"accepted", bare.Wrap(ok), get},
		{"accepted with a body", bare.Wrap(ok), post},
		{"observed", observed.Wrap(ok), get},
		{"observed with a body", observed.Wrap(ok), post},
		{"groups", groups.Wrap(ok), get},
		{"refused", full.Wrap(ok), get},
		{"refused with a body", full.Wrap(ok), post},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := &keptWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				c.h.ServeHTTP(w, c.r)
			}
		})
	}
}
