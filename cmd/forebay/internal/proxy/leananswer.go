package proxy

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clientAnswer is the writer of an answer of the lean server. It does what net/http's
// does, header by header and byte for byte: what is written goes through two buffers, of
// which the first holds back what may be the whole of a short answer, so that its length
// can be said. TestSameAnswers compares them.
type clientAnswer struct {
	client  *clientConn
	isHead  bool
	header  http.Header
	buffers *answerBuffers
	atOnce  bool // the whole of it went out in one piece

	status  int   // of the final answer; 0: not begun
	length  int64 // as the handler said; -1: it did not
	written int64
	said    said     // which headers the handler has set
	trailer []string // as announced

	at        time.Time // when the headers went out
	isDone    bool      // the handler has returned
	isOut     bool      // the headers are on their way
	isChunked bool
	isLast    bool // the connection ends with it
	err       error

	isReadTimed, isWriteTimed atomic.Bool // somebody has set a deadline
}

// said are headers that are added where nobody has said them.
type said struct{ date, kind, close bool }

// answerBuffers are what an answer is written through.
type answerBuffers struct {
	held *bufio.Writer // to the answer itself
	out  *bufio.Writer // to the connection
	head []byte        // its headers, as they were when it began

	fields []headerField // while they are sorted
}

type headerField struct {
	name  string
	lines []string
}

var answerBufferPool = sync.Pool{New: func() any {
	return &answerBuffers{held: bufio.NewWriterSize(nil, 2<<10), out: bufio.NewWriterSize(nil, 4<<10), head: make([]byte, 0, 1<<10)}
}}

// begin makes it the answer to a request. Its headers are kept from one to the next.
func (a *clientAnswer) begin(c *clientConn, r *http.Request) {
	header := a.header
	if header == nil {
		header = make(http.Header, 16)
	}
	*a = clientAnswer{
		client: c, isHead: r.Method == http.MethodHead, isLast: r.Close, length: -1,
		header: header, buffers: answerBufferPool.Get().(*answerBuffers),
	}
	a.buffers.held.Reset((*heldBack)(a))
	a.buffers.out.Reset((*toClient)(a))
}

// close sends what is on its way of an answer that broke off, and gives the buffers back.
func (a *clientAnswer) close() {
	b := a.buffers
	_ = b.out.Flush()
	b.held.Reset(nil)
	b.out.Reset(nil)
	answerBufferPool.Put(b)
	a.buffers = nil
	clear(a.header)
}

// Header returns the headers of the answer.
func (a *clientAnswer) Header() http.Header { return a.header }

// WriteHeader begins the answer, or sends a 1xx before it.
func (a *clientAnswer) WriteHeader(status int) {
	switch {
	case a.status != 0:
		return
	case status < 100 || status > 999:
		panic("proxy: WriteHeader with status " + strconv.Itoa(status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		a.interim(status)
		return
	}
	a.status = status
	if text := a.header.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			a.length = n
		} else {
			a.header.Del("Content-Length")
		}
	}
	a.isLast = a.isLast || a.header.Get("Connection") == "close" || a.client.isEnding()
	a.snapshot()
}

// interim sends an answer of kind 1xx.
func (a *clientAnswer) interim(status int) {
	out := a.buffers.out
	a.buffers.head = appendStatusLine(a.buffers.head[:0], status)
	_, _ = out.Write(a.buffers.head)
	_ = a.header.WriteSubset(out, map[string]bool{"Content-Length": true, "Transfer-Encoding": true})
	_, _ = out.WriteString(lineEnd)
	_ = out.Flush() // an error stays with the buffer
}

// snapshot writes down the headers, in the order of their names: the handler may change
// the map now.
func (a *clientAnswer) snapshot() {
	b := a.buffers
	fields := b.fields[:0]
	for name, lines := range a.header {
		if !a.sees(name, lines) || !consistsOf(name, inToken) {
			continue
		}
		fields = append(fields, headerField{name, lines})
		for i := len(fields) - 1; i > 0 && fields[i].name < fields[i-1].name; i-- { // there are few
			fields[i], fields[i-1] = fields[i-1], fields[i]
		}
	}
	b.head = appendStatusLine(b.head[:0], a.status)
	for _, f := range fields {
		for _, line := range f.lines {
			b.head = append(append(b.head, f.name...), ": "...)
			b.head = append(append(b.head, oneLine(line)...), lineEnd...)
		}
	}
	clear(fields)
	b.fields = fields
}

// sees notes what a header says, and reports whether it goes out as it is.
func (a *clientAnswer) sees(name string, lines []string) bool {
	switch name {
	case "Trailer":
		a.announce(lines)
	case "Transfer-Encoding":
		return false // it is said where it is known
	case "Content-Type":
		a.said.kind = true
		return a.status != http.StatusNotModified
	case "Content-Encoding":
		a.said.kind = a.said.kind || len(lines) > 0 && lines[0] != ""
	case "Content-Length":
		return hasBody(a.status)
	case "Connection":
		a.said.close = hasToken(lines, "close")
		return a.said.close || !a.isLast
	case "Date":
		a.said.date = true
	default:
		if strings.HasPrefix(name, http.TrailerPrefix) {
			a.trailer = append(a.trailer, name)
			return false
		}
	}
	return true
}

// oneLine is a value as it may stand in a header.
func oneLine(value string) string {
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = lineBreaks.Replace(value)
	}
	return strings.Trim(value, " \t")
}

var lineBreaks = strings.NewReplacer("\n", " ", "\r", " ")

// announce notes which trailers there will be.
func (a *clientAnswer) announce(lines []string) {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name != "" {
				a.trailer = append(a.trailer, name)
			}
		}
	}
}

func appendStatusLine(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, lineEnd...)
}

func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write writes a piece of the body.
func (a *clientAnswer) Write(p []byte) (int, error) {
	if err := a.writes(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	return a.buffers.held.Write(p)
}

// WriteString writes a piece of the body.
func (a *clientAnswer) WriteString(p string) (int, error) {
	if err := a.writes(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	return a.buffers.held.WriteString(p)
}

// writes says that so many bytes of the body come. An error: they must not.
func (a *clientAnswer) writes(n int) error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case n == 0:
		return nil
	case !hasBody(a.status):
		return http.ErrBodyNotAllowed
	}
	a.written += int64(n)
	if a.length >= 0 && a.written > a.length {
		return http.ErrContentLength
	}
	return nil
}

// heldBack is where an answer's body goes once it is no longer held back.
type heldBack clientAnswer

// Write sends a piece of the body.
func (h *heldBack) Write(p []byte) (int, error) {
	a, out := (*clientAnswer)(h), h.buffers.out
	a.sendHead(p)
	if a.isHead {
		return len(p), nil
	}
	if !a.isChunked {
		return out.Write(p)
	}
	_, _ = out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(len(p)), 16))
	_, _ = out.WriteString(lineEnd)
	_, _ = out.Write(p)
	_, err := out.WriteString(lineEnd) // errors stay
	return len(p), err
}

// sendHead sends the headers, with what is known of the body from its first piece.
func (a *clientAnswer) sendHead(first []byte) {
	if a.isOut {
		return
	}
	a.isOut, a.at = true, clock()
	h := a.buffers.head
	if !a.said.date {
		h = append(append(append(h, "Date: "...), dateOf(a.at)...), lineEnd...)
	}
	body := hasBody(a.status)
	if a.isDone && a.length < 0 && body && len(a.trailer) == 0 && (!a.isHead || len(first) > 0) {
		a.length = int64(len(first))
		h = append(strconv.AppendInt(append(h, "Content-Length: "...), a.length, 10), lineEnd...)
	}
	if body && !a.said.kind && len(first) > 0 {
		h = append(append(append(h, "Content-Type: "...), http.DetectContentType(first)...), lineEnd...)
	}
	if a.isLast && !a.said.close {
		h = append(h, "Connection: close\r\n"...)
	}
	if a.isChunked = a.length < 0 && body && !a.isHead; a.isChunked {
		h = append(h, "Transfer-Encoding: chunked\r\n"...)
	}
	h = append(h, lineEnd...)
	_, _ = a.buffers.out.Write(h) // an error stays with the buffer
	a.buffers.head = h            // it may have grown
}

// dated is the text of a second, for the header Date.
type dated struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[dated]

func dateOf(t time.Time) string {
	d := lastDate.Load()
	if d == nil || d.second != t.Unix() {
		d = &dated{t.Unix(), t.UTC().Format(http.TimeFormat)}
		lastDate.Store(d)
	}
	return d.text
}

// toClient is where all of it goes in the end.
type toClient clientAnswer

// Write writes to the client, and tells the handler when that has gone.
func (t *toClient) Write(p []byte) (int, error) {
	n, err := t.client.Conn.Write(p)
	(*clientAnswer)(t).failed(err)
	return n, err
}

func (a *clientAnswer) failed(err error) {
	if err != nil {
		a.err = err
		a.client.leave()
	}
}

// Flush sends what was written.
func (a *clientAnswer) Flush() { _ = a.FlushError() }

// FlushError is Flush that says what went wrong.
func (a *clientAnswer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	err := a.buffers.held.Flush()
	a.sendHead(nil)
	if out := a.buffers.out.Flush(); err == nil {
		err = out
	}
	return err
}

// sniffed is how much of a body its kind is guessed from.
const sniffed = 512

// ReadFrom writes what comes from another connection, by the kernel alone where it can.
func (a *clientAnswer) ReadFrom(from io.Reader) (n int64, err error) {
	plain := struct{ io.Writer }{a}
	if a.status == 0 || !a.isOut && !a.said.kind { // the first piece says what it is
		if n, err = io.Copy(plain, io.LimitReader(from, sniffed)); err != nil || n < sniffed {
			return n, err
		}
	}
	if err := a.FlushError(); err != nil {
		return n, err
	}
	if a.isChunked || a.isHead || !hasBody(a.status) || a.length < 0 {
		more, err := io.Copy(plain, from)
		return n + more, err
	}
	more, err := a.client.ReadFrom(from)
	a.written += more
	return n + more, err
}

// finish sends what is left, and reports whether another request may follow.
func (a *clientAnswer) finish() bool {
	a.isDone = true
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.atOnce = !a.isOut
	_ = a.buffers.held.Flush()
	a.sendHead(nil)
	if a.isChunked {
		_, _ = a.buffers.out.WriteString("0\r\n")
		_ = a.trailers().Write(a.buffers.out)
		_, _ = a.buffers.out.WriteString(lineEnd)
	}
	if a.buffers.out.Flush() != nil || a.err != nil || a.isLast {
		return false
	}
	return a.isHead || a.length < 0 || !hasBody(a.status) || a.written == a.length // else half of it is missing
}

// trailers are those that were announced, or marked as such.
func (a *clientAnswer) trailers() http.Header {
	t := http.Header{}
	for name, lines := range a.header {
		if trailer, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			t[trailer] = lines
		}
	}
	for _, name := range a.trailer {
		if lines := a.header[name]; lines != nil && !strings.HasPrefix(name, http.TrailerPrefix) {
			t[name] = lines
		}
	}
	return t
}

// SetReadDeadline sets until when the client's leaving is watched for.
func (a *clientAnswer) SetReadDeadline(t time.Time) error {
	a.isReadTimed.Store(true)
	return a.client.SetReadDeadline(t)
}

// SetWriteDeadline sets until when the answer may be written.
func (a *clientAnswer) SetWriteDeadline(t time.Time) error {
	a.isWriteTimed.Store(true)
	return a.client.SetWriteDeadline(t)
}

// EnableFullDuplex does nothing: there is no body that could be read beside the answer.
func (a *clientAnswer) EnableFullDuplex() error { return nil }
