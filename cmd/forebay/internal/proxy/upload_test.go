package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"
)

// TestShutWaitsForWhoReads: no Read of a body goes on behind the handler, where it would
// meet net/http's server at the end of the body; and the deadline that ended it is left to
// nobody but who reads on already.
func TestShutWaitsForWhoReads(t *testing.T) {
	for _, end := range []error{os.ErrDeadlineExceeded, io.EOF} {
		begun, woken, over := make(chan bool), make(chan bool), make(chan bool)
		ended := false
		u := &upload{from: io.NopCloser(readerFunc(func([]byte) (int, error) {
			close(begun)
			<-woken
			ended = true
			return 0, end
		}))}
		go func() {
			defer close(over)
			_, _ = u.Read(make([]byte, 1))
		}()
		<-begun
		var until []time.Time
		u.shut(true, func(at time.Time) error {
			if until = append(until, at); len(until) == 2 { // the first was overtaken
				close(woken)
			}
			return nil
		})
		if len(until) < 2 {
			close(woken)
			t.Fatalf("%v: it is over, and somebody reads", end)
		}
		if !ended {
			t.Errorf("%v: it is not waited for", end)
		}
		<-over
		if isZero := until[len(until)-1].IsZero(); isZero == (end == io.EOF) || !until[0].Before(time.Now()) {
			t.Errorf("%v: deadlines %v", end, until)
		}
		if _, err := u.Read(make([]byte, 1)); err != errShut {
			t.Errorf("%v: afterwards: %v", end, err)
		}
	}
	u := &upload{}
	u.shut(true, func(time.Time) error {
		t.Error("a deadline for nobody")
		return nil
	})
}

// TestSlowUploadIsNoLeaver: net/http's server cancels a request before the read returns
// whose time is over. The caller is told of its time all the same.
func TestSlowUploadIsNoLeaver(t *testing.T) {
	noLeaks(t)
	broken := make(chan bool)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(broken)
	}))
	defer backend.Close()
	upstream, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{Upstream: upstream, ResponseTimeout: patience, IdlePerHost: 1, Transport: transport})
	defer h.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/x", readerFunc(func([]byte) (int, error) {
		cancel()
		<-broken // the exchange is given up at the upstream by now
		return 0, os.ErrDeadlineExceeded
	}))
	r.ContentLength = 10
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
