package proxy

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// forward hands the request on by the lean transport and the answer back. It is what
// httputil.ReverseProxy does for all others, without a copy of every header, a context
// and a trace for each request; and it lets the kernel hand on what is large.
func (x *exchange) forward() {
	res, err := x.handler.transports.lean.send(x.outgoing(), x.interim, x.leave)
	if err != nil {
		x.refuse(x.blame(err))
		return
	}
	defer res.Body.Close() // of one that was not read to its end: the connection is lost
	removeHopByHop(res.Header)
	if err := x.answered(res); err != nil {
		x.refuse(x.blame(err))
		return
	}
	h := x.answer.Header()
	addTo(h, res.Header)
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	x.answer.WriteHeader(res.StatusCode)
	if err := x.copyAnswer(res); err != nil {
		if x.request.Context().Value(http.ServerContextKey) != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
	x.endWith(res.Trailer, announced)
}

// outgoing makes the request that goes to the upstream.
func (x *exchange) outgoing() *http.Request {
	out := *x.request
	out.Header = make(http.Header, len(x.request.Header)+8)
	for name, lines := range x.request.Header {
		if !isHopByHop(name) {
			out.Header[name] = lines
		}
	}
	for _, line := range x.request.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out.Header.Del(strings.Trim(name, " \t"))
		}
	}
	if hasToken(x.request.Header["Te"], "trailers") {
		out.Header["Te"] = []string{"trailers"}
	}
	for _, name := range []string{forwarded, forwardedFor, "X-Forwarded-Host", "X-Forwarded-Proto"} {
		delete(out.Header, name)
	}
	if out.Header["User-Agent"] == nil {
		out.Header["User-Agent"] = []string{""} // else net/http sends its own
	}
	out.Close, out.RequestURI = false, ""
	if out.ContentLength == 0 {
		out.Body = nil
	}
	x.rewrite(x.request, &out)
	return &out
}

// interim hands on an answer of kind 1xx.
func (x *exchange) interim(status int, header http.Header) {
	h := x.answer.Header()
	addTo(h, header)
	x.answer.WriteHeader(status)
	clear(h) // net/http does not do it for these
}

func addTo(h, more http.Header) {
	for name, lines := range more {
		if h[name] == nil {
			h[name] = lines
		} else {
			h[name] = append(slices.Clip(h[name]), lines...)
		}
	}
}

// copyAnswer copies the body. What comes in pieces, or has no known length, goes on in
// those pieces.
func (x *exchange) copyAnswer(res *http.Response) error {
	if res.Body == http.NoBody {
		return nil
	}
	flush := res.ContentLength < 0 || isEventStream(res.Header)
	control := http.NewResponseController(&x.answer)
	if flush {
		_ = control.Flush() // the body may be long in coming
	} else if b, ok := x.body.ReadCloser.(*leanBody); ok && res.ContentLength >= spliceFrom {
		if err := x.splice(b, res.ContentLength); err != errNoSplice {
			return err
		}
	}
	buffer := buffers{}.Get()
	defer buffers{}.Put(buffer)
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 {
			if _, err := x.answer.Write(buffer[:n]); err != nil {
				return err
			}
			if flush {
				_ = control.Flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const (
	// spliceFrom is the length from which the kernel hands on an answer: below, the calls
	// that it takes cost more than the copies.
	spliceFrom = 64 << 10
)

var errNoSplice = errors.New("proxy: the kernel cannot do it")

// splice lets the kernel move the body from one socket to the other.
func (x *exchange) splice(b *leanBody, length int64) error {
	if x.request.ProtoMajor != 1 {
		return errNoSplice
	}
	to, ok := x.answer.ResponseWriter.(io.ReaderFrom)
	from := b.conn.spliceable()
	if !ok || from == nil {
		return errNoSplice
	}
	buffer := buffers{}.Get()
	defer buffers{}.Put(buffer)
	for here := b.conn.answers.Buffered(); here > 0; { // came with the headers
		n, err := b.ReadCloser.Read(buffer[:min(here, len(buffer))])
		if err != nil {
			x.body.err = err
			return err
		}
		if _, err := x.answer.Write(buffer[:n]); err != nil {
			return err
		}
		here, length = here-n, length-int64(n)
	}
	n, err := to.ReadFrom(&io.LimitedReader{R: from, N: length})
	x.answer.bytes += n
	switch {
	case err == nil && n == length:
		b.end()
		return nil
	case err == nil:
		err = io.ErrUnexpectedEOF
	case !b.conn.hasEnded():
		x.answer.err = err
		return err
	}
	x.body.err = err
	return err
}

// endWith sends the trailers, as headers where they were announced.
func (x *exchange) endWith(trailer http.Header, announced int) {
	if len(trailer) == 0 {
		return
	}
	_ = http.NewResponseController(&x.answer).Flush() // so that a short answer is chunked
	for name, lines := range trailer {
		if len(trailer) != announced {
			name = http.TrailerPrefix + name
		}
		for _, line := range lines {
			x.answer.Header().Add(name, line)
		}
	}
}

func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// removeHopByHop removes what is between the upstream and us.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.Trim(name, " \t"))
		}
	}
	for name := range h {
		if isHopByHop(name) {
			delete(h, name)
		}
	}
}

// hasToken reports whether lists have a word, in whatever case.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(word, " \t"), token) {
				return true
			}
		}
	}
	return false
}
