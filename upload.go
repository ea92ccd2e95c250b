package forebay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Upload says how the bodies of requests have to come. A client that sends a byte a
// second would else keep its slot for as long as it likes. The zero value leaves it to
// the server's own timeouts. In a chain the first gate that has rules decides.
type Upload struct {
	// BodyFirst makes a request ask for its slot only when its body is there, if that has at
	// most so many bytes: what it holds while it comes is memory, counted by
	// [Config.Intake], and no slot. A larger body, one for which there is no memory, and
	// one whose client waits to be told to go on (Expect: 100-continue, over HTTP/1) come
	// while the slot is held. 0: every request asks when its headers are there.
	BodyFirst int64
	// MinRate is how many bytes a second have to come, on average over the time in which
	// somebody waits for them. 0: no minimum.
	MinRate int64
	// Grace is how long a body may take beyond what MinRate allows. 0 means 5 s: a fast
	// client behind a bad network stalls for that long.
	Grace time.Duration
	// MaxTime bounds the time that is spent waiting for a body altogether. 0: no bound.
	MaxTime time.Duration
}

const defaultUploadGrace = 5 * time.Second

func (u *Upload) validate() (errs []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("forebay: Upload."+format, args...))
		}
	}
	wrong(u.BodyFirst < 0, "BodyFirst is %d; it must be 0 (the slot comes first) or more bytes", u.BodyFirst)
	wrong(u.MinRate < 0, "MinRate is %d; it must be 0 (no minimum) or more bytes a second", u.MinRate)
	wrong(u.Grace < 0 || u.Grace > longestHold, "Grace is %v; it must be 0 (%v) to %v", u.Grace, defaultUploadGrace, longestHold)
	wrong(u.MaxTime < 0 || u.MaxTime > longestHold, "MaxTime is %v; it must be 0 (no bound) to %v", u.MaxTime, longestHold)
	wrong(u.Grace > 0 && u.MinRate == 0, "Grace is %v without a MinRate; set MinRate, or MaxTime", u.Grace)
	return errs
}

// timed reports whether somebody looks at the clock.
func (u *Upload) timed() bool { return u.MinRate > 0 || u.MaxTime > 0 }

// left returns how much longer a body of which n bytes have come may be waited for, after
// waiting for so long.
func (u *Upload) left(n int64, waited time.Duration) time.Duration {
	left := longestHold
	if u.MinRate > 0 {
		earned := min(float64(n)/float64(u.MinRate)*float64(time.Second), float64(longestHold))
		left = min(left, orElse(u.Grace, defaultUploadGrace)+time.Duration(earned)-waited)
	}
	if u.MaxTime > 0 {
		left = min(left, u.MaxTime-waited)
	}
	return left
}

// paced is a body that has to come at a pace. Only the time in which somebody waits for
// it counts: a handler that reads slowly is not its client's fault.
type paced struct {
	io.ReadCloser
	w      http.ResponseWriter
	r      *http.Request
	rules  Upload
	intake *Intake

	n      int64
	waited time.Duration
	end    error // how it ended; nil: it goes on
}

// Read reads on, for as long as the client may take.
func (p *paced) Read(b []byte) (int, error) {
	if p.end != nil {
		return 0, p.end
	}
	start := clock()
	_ = readUntil(p.w, p.r, start.Add(max(0, p.rules.left(p.n, p.waited)))) // where it can be set
	n, err := p.ReadCloser.Read(b)
	p.n += int64(n)
	p.waited += clock().Sub(start)
	p.end = err
	if errors.Is(err, os.ErrDeadlineExceeded) { // it stays: what follows on the wire is not waited for
		p.intake.slow.Add(1)
		return n, err
	}
	_ = readUntil(p.w, p.r, time.Time{}) // passing while nobody reads, it would end the body, or the whole request
	return n, err
}

// uploadOf returns the rules for a request that passes these gates, and the intake that
// counts what is held of it.
func uploadOf(gates []*Gate) (Upload, *Intake) {
	for _, g := range gates {
		if s := g.settings.Load(); s.Upload != (Upload{}) {
			return s.Upload, s.intake()
		}
	}
	return Upload{}, processIntake // changed in this very moment
}

// come applies the rules to a request that is about to ask for its slot. False: its body
// did not come; it has been answered, if anybody is there.
func (in *inbound) come(rules Upload, intake *Intake, id string) bool {
	r := in.r
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return true
	}
	in.body = r.Body
	if srv := inServer(r); srv != nil && srv.ReadTimeout > 0 && rules.timed() {
		rules.MaxTime = min(orElse(rules.MaxTime, longestHold), srv.ReadTimeout) // whose deadline ours take the place of
	}
	if rules.timed() {
		r.Body = &paced{ReadCloser: r.Body, w: in.w, r: r, rules: rules, intake: intake}
	}
	if rules.BodyFirst == 0 || r.ContentLength > rules.BodyFirst || expects(r) {
		return true
	}
	f := &inflow{body: r.Body, most: rules.BodyFirst, held: intake.config.Bytes.Held()}
	if !f.begin(r.ContentLength) {
		return true
	}
	in.flow = f
	f.ahead()
	switch err := f.err; {
	case err == nil, err == io.EOF:
		return true
	case errors.Is(err, os.ErrDeadlineExceeded):
		in.end()
		tooSlow(in.w, r, intake, id)
	default:
		in.end()
		silence(in.w, r)
	}
	return false
}

// tooSlow answers a request whose body did not come in time. It is none of its gate's
// decisions, which has not been asked.
func tooSlow(w http.ResponseWriter, r *http.Request, intake *Intake, id string) {
	if id == "" {
		id = requestID(w, r)
	}
	h := w.Header()
	h["Content-Type"] = headerJSON
	h["Cache-Control"] = headerNoStore
	h[requestIDHeader] = []string{id}
	intake.Answer(w, r, http.StatusRequestTimeout, []byte(`{"error":"request_timeout","requestId":"`+id+`"}`))
}
