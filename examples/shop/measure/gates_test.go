package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// With all reports taken, reports are refused and orders are not.
func TestGatedByGroup(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h, err := gated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reports/revenue" {
			inside <- struct{}{}
			<-leave
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	ended := make(chan struct{})
	for range 2 {
		go func() { ask("/reports/revenue"); ended <- struct{}{} }()
		<-inside
	}
	if w := ask("/reports/revenue"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("a third report: %d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/api/orders", "/admin/info", "/health"} {
		if w := ask(path); w.Code != http.StatusOK {
			t.Errorf("%s beside two reports: %d", path, w.Code)
		}
	}
	close(leave)
	<-ended
	<-ended
}
