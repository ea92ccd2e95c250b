package forebaytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// work is what stands behind the gate of a [Lifetime]: each path is one way to behave.
type work struct {
	inFlight atomic.Int64
	ran      atomic.Int64 // so far
	left     atomic.Int64 // whose caller has left while they ran

	mu    sync.Mutex // guards letGo
	letGo chan struct{}
}

func newWork() *work { return &work{letGo: make(chan struct{})} }

// letAllGo lets everybody go who is held now.
func (k *work) letAllGo() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.letGo)
	k.letGo = make(chan struct{})
}

func (k *work) released() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.letGo
}

// ServeHTTP runs one request.
func (k *work) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	letGo := k.released()
	k.ran.Add(1)
	defer context.AfterFunc(r.Context(), func() { k.left.Add(1) })()
	k.inFlight.Add(1)
	defer k.inFlight.Add(-1)
	behave, ok := behaviours[r.URL.Path]
	if !ok {
		_, _ = io.WriteString(w, "ok")
		return
	}
	behave(w, r, letGo)
}

var behaviours = map[string]func(w http.ResponseWriter, r *http.Request, letGo <-chan struct{}){
	"/nothing": func(http.ResponseWriter, *http.Request, <-chan struct{}) {},
	"/held": func(w http.ResponseWriter, _ *http.Request, letGo <-chan struct{}) { // whatever its caller does
		<-letGo
		_, _ = io.WriteString(w, "ok")
	},
	"/attentive": func(_ http.ResponseWriter, r *http.Request, _ <-chan struct{}) { <-r.Context().Done() },
	"/abort":     func(http.ResponseWriter, *http.Request, <-chan struct{}) { panic(http.ErrAbortHandler) },
	"/panic":     func(http.ResponseWriter, *http.Request, <-chan struct{}) { panic("the work of this test panics") },
	"/half": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Length", "1000")
		flushed(w, "half")
		panic(http.ErrAbortHandler)
	},
	"/short": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "less than it says")
	},
	"/read": func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	},
	"/early": func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		flushed(w, "at once")
		_, _ = io.Copy(io.Discard, r.Body)
	},
	"/endless": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		for piece, err := strings.Repeat("x", 1<<16), error(nil); err == nil; {
			_, err = io.WriteString(w, piece)
		}
	},
	"/events": func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Type", "text/event-stream")
		flushed(w, "data: 1\n\n")
		<-r.Context().Done()
	},
	"/trailers": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "ok")
		w.Header().Set("X-End", "yes")
	},
	"/upgrade": upgraded,
}

func flushed(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// upgraded takes the connection over and repeats what it reads, until it reads "bye".
func upgraded(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, fmt.Sprint("cannot take the connection over: ", err), http.StatusInternalServerError)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil || line == "bye\n" {
			return
		}
		_, _ = io.WriteString(c, line)
	}
}
