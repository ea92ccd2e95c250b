package proxy

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// verdict is what the lean server makes of the bytes that have come.
type verdict uint8

const (
	isSimple  verdict = iota // a whole request that it answers itself
	isPartial                // the beginning of one that may become simple
	isOther                  // not for it: net/http reads them
)

// readSimple reads the request with which b begins, if it is simple: a GET or a HEAD of
// HTTP/1.1 without a body, of which every byte can be read in one way only. It fills in
// r, which is empty, and returns the request's length. Whatever is unusual in the least
// is other, so that there is one reading of it, net/http's. What is simple net/http reads
// in the same way; FuzzSimple looks after that.
func readSimple(b []byte, r *incoming) (length int, what verdict) {
	r.Method = http.MethodGet
	rest, ok := bytes.CutPrefix(b, []byte("GET "))
	if !ok {
		if rest, ok = bytes.CutPrefix(b, []byte("HEAD ")); !ok {
			if isBeginning(b, "GET ") || isBeginning(b, "HEAD ") {
				return 0, isPartial
			}
			return 0, isOther
		}
		r.Method = http.MethodHead
	}
	length, lines, what := simpleLines(rest)
	if what != isSimple {
		return 0, what
	}
	text := string(rest[:length])
	target, fields, _ := strings.Cut(text, lineEnd)
	target, ok = strings.CutSuffix(target, " HTTP/1.1")
	if !ok || !r.readTarget(target) || !r.readFields(fields, lines) {
		return 0, isOther
	}
	return length + len(b) - len(rest), isSimple
}

func isBeginning(b []byte, of string) bool { return len(b) < len(of) && string(b) == of[:len(b)] }

const lineEnd = "\r\n"

// simpleLines finds the end of the headers. Up to there, and in what has come if it has
// not, only printable characters may stand, and line ends of both bytes.
func simpleLines(b []byte) (length, lines int, what verdict) {
	start := 0 // of the line
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case byteSets[c]&inValue != 0:
		case c != '\r':
			return 0, 0, isOther
		case i+1 == len(b):
			return 0, 0, isPartial
		case b[i+1] != '\n':
			return 0, 0, isOther
		case i == start && lines == 0:
			return 0, 0, isOther
		case i == start:
			return i + 2, lines - 1, isSimple // the first is the request line
		default:
			lines++
			i++
			start = i + 1
		}
	}
	return 0, 0, isPartial
}

// readTarget makes of a target what net/url does, and reports whether it stands for
// itself.
func (r *incoming) readTarget(target string) bool {
	path, query, hasQuery := strings.Cut(target, "?")
	if path == "" || path[0] != '/' || hasQuery && query == "" || !consistsOf(path, inPath) || !consistsOf(query, inQuery) {
		return false
	}
	r.RequestURI, r.url.Path, r.url.RawQuery = target, path, query
	return true
}

// readFields reads that many headers, and reports whether they are simple.
func (r *incoming) readFields(fields string, lines int) bool {
	values := r.values[:]
	if lines > len(values) {
		values = make([]string, lines)
	}
	for fields != lineEnd {
		var line string
		line, fields, _ = strings.Cut(fields, lineEnd)
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || !consistsOf(name, inName) {
			return false
		}
		name, value = textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
		switch name {
		case "Host":
			if r.Host != "" || value == "" || !consistsOf(value, inHost) {
				return false
			}
			r.Host = value
			continue
		case "Connection":
			if r.Close = strings.EqualFold(value, "close"); !r.Close && !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Content-Length", "Expect", "Http2-Settings", "Keep-Alive", "Pragma", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			return false // it has a body, or wants what is not done here
		}
		if r.Header[name] != nil {
			return false
		}
		values[0] = value
		r.Header[name] = values[:1:1]
		values = values[1:]
	}
	return r.Host != ""
}

// Sets of bytes.
const (
	inName  = 1 << iota // of headers that come
	inToken             // of headers that go
	inValue             // or anywhere else
	inPath              // that net/url neither decodes nor encodes
	inQuery
	inHost
)

var byteSets = func() (sets [256]uint8) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for set, members := range map[uint8]string{
		inName: letters + "-_", inToken: letters + "!#$%&'*+-.^_`|~", inPath: letters + "-_.~$&+,/:=@", inHost: letters + "-._:[]",
	} {
		for i := range len(members) {
			sets[members[i]] |= set
		}
	}
	for c := byte(' '); c <= '~'; c++ {
		sets[c] |= inValue
		if c > ' ' && c != '#' {
			sets[c] |= inQuery
		}
	}
	sets['\t'] |= inValue
	return sets
}()

func consistsOf(s string, set uint8) bool {
	for i := range len(s) {
		if byteSets[s[i]]&set == 0 {
			return false
		}
	}
	return true
}
