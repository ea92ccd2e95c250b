package proxy

import (
	"io"
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
		u.shut(func(at time.Time) error {
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
	u.shut(func(time.Time) error {
		t.Error("a deadline for nobody")
		return nil
	})
}
