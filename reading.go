package forebay

import (
	"bytes"
	"net/url"
	"unicode"
	"unicode/utf8"
)

// One path, many readings. A backend may route by the path as it was sent or as
// it is once decoded, may resolve "..", merge slashes, take a backslash for a
// slash, cut off ";v=1", and do these in any order, since there is often a
// second proxy or framework behind the first. A request must not escape its gate
// by a spelling that we read in one way and the backend in another, so we follow
// every order and match every outcome. (Case is folded at the match itself.)
//
// A reading is a path in which each byte stands for itself, except that "%2f"
// is a slash inside of a segment and "%25" a percent sign. Thus `/a%2Fb` has the
// readings "/a%2fb" (as sent, one segment) and "/a/b" (decoded, two), and a
// plain path is its own reading.

// An honest path has one to four readings. One that is ambiguous in all ways at
// once would have hundreds, and cost more than the work that a gate protects: if
// its spellings together are longer than freeSpelling and four times the path,
// their list is not complete, and the request passes every gate that it could
// name. Each counts as spellingOverhead bytes longer than it is.
const (
	freeSpelling     = 16 << 10
	spellingOverhead = 96
)

// isPlain reports whether a path is its own and only reading but for case, and
// whether folding could change it.
func isPlain(path string) (plain, cased bool) {
	if path == "" || path[0] != '/' {
		return false, false
	}
	for i := range len(path) {
		switch byteKinds[path[i]] {
		case slashByte:
			if i+1 < len(path) && (path[i+1] == '/' || startsWithDots(path[i+1:])) {
				return false, false
			}
		case ambiguousByte:
			return false, false
		case casedByte:
			cased = true
		}
	}
	return true, cased
}

const (
	plainByte = iota
	slashByte
	ambiguousByte
	casedByte
)

// byteKinds is a table because isPlain is on the path of every request.
var byteKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			kinds[c] = casedByte
		}
	}
	kinds['/'] = slashByte
	kinds['%'], kinds['\\'], kinds[';'] = ambiguousByte, ambiguousByte, ambiguousByte
	return kinds
}()

// startsWithDots reports whether the first segment of s is "." or "..".
func startsWithDots(s string) bool {
	for i := range len(s) {
		if s[i] != '.' {
			return s[i] == '/' && 0 < i && i < 3
		}
	}
	return 0 < len(s) && len(s) < 3
}

// readingsOf lists the readings of a path, the one as sent first, without
// repeats; complete is false if there are too many to list.
func readingsOf(u *url.URL) (readings [][]byte, complete bool) {
	sent := rooted(u.EscapedPath())
	s := spellings{seen: map[spellingKey]bool{}, left: freeSpelling + 4*len(sent)}
	s.add(decodeSegments(sent), decodedOnce)
	s.add(sent, undecoded)
	// EscapedPath throws RawPath away if a byte in it ought to have been
	// escaped, but the bytes that are forwarded may be those of RawPath.
	if u.RawPath != "" {
		s.add(rooted(u.RawPath), undecoded)
	}
	for i := 0; i < len(s.list) && s.left >= 0; i++ {
		s.respell(s.list[i])
	}
	for _, sp := range s.list {
		if sp.stage != undecoded {
			readings = append(readings, sp.text)
		}
	}
	return readings, s.left >= 0
}

func rooted(path string) []byte {
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	return []byte(path)
}

// A stage says how often a spelling has been decoded. Decoded once it is a
// reading; a percent escape that it still holds may be decoded once more.
type stage int

const (
	undecoded stage = iota
	decodedOnce
	decodedTwice
)

type spelling struct {
	text  []byte
	stage stage
}

type spellingKey struct {
	text  string
	stage stage
}

// spellings is the list of those found so far. Each step that leads from one to
// the next shortens the text, takes a backslash away or goes to the next stage,
// so the list ends even without a bound.
type spellings struct {
	list []spelling
	seen map[spellingKey]bool
	left int // bytes that may still be added
}

func (s *spellings) add(text []byte, at stage) {
	if s.seen[spellingKey{string(text), at}] {
		return
	}
	s.seen[spellingKey{string(text), at}] = true
	s.list = append(s.list, spelling{text, at})
	s.left -= len(text) + spellingOverhead
}

// respell adds what one step makes of a spelling.
func (s *spellings) respell(from spelling) {
	text := from.text
	if bytes.IndexByte(text, '\\') >= 0 {
		s.add(bytes.ReplaceAll(text, []byte{'\\'}, []byte{'/'}), from.stage)
	}
	if bytes.IndexByte(text, ';') >= 0 {
		s.add(cutParameters(text), from.stage)
	}
	if bytes.Contains(text, []byte("//")) {
		s.add(mergeSlashes(text), from.stage)
	}
	if bytes.Contains(text, []byte("/.")) {
		s.add(resolveDots(text, false), from.stage)
		s.add(resolveDots(text, true), from.stage)
	}
	switch from.stage {
	case undecoded:
		s.add(decodeSegments(text), decodedOnce)
		s.add(decodeEscapes(text, "%", "/"), decodedOnce)
	case decodedOnce:
		if again := decodeEscapes(text, "%25", "%2f"); !bytes.Equal(again, text) {
			s.add(again, decodedTwice)
			s.add(decodeEscapes(text, "%25", "/"), decodedTwice)
		}
	}
}

// decodeSegments is the reading of an escaped path that is split at its slashes
// first and decoded then, as net/http does it.
func decodeSegments(path []byte) []byte { return decodeEscapes(path, "%", "%2f") }

// decodeEscapes decodes each escape that is mark and two digits: mark is "%" in an
// escaped path and "%25" in a reading. A decoded slash becomes the given text.
// What is no valid escape stands for itself.
func decodeEscapes(text []byte, mark, slash string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '%' {
			out = append(out, c)
			continue
		}
		decoded, ok := escapedByte(text[i:], mark)
		switch {
		case !ok && mark == "%" || ok && decoded == '%':
			out = append(out, "%25"...)
		case !ok:
			out = append(out, c)
		case decoded == '/':
			out = append(out, slash...)
		default:
			out = append(out, decoded)
		}
		if ok {
			i += len(mark) + 1
		}
	}
	return out
}

// escapedByte decodes the escape with which text begins, if it does.
func escapedByte(text []byte, mark string) (byte, bool) {
	if len(text) < len(mark)+2 || string(text[:len(mark)]) != mark {
		return 0, false
	}
	high, ok1 := hexDigit(text[len(mark)])
	low, ok2 := hexDigit(text[len(mark)+1])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// cutParameters takes ";v=1" off the end of each segment.
func cutParameters(text []byte) []byte {
	out := make([]byte, 0, len(text))
	inside := false
	for _, c := range text {
		inside = c != '/' && (inside || c == ';')
		if !inside {
			out = append(out, c)
		}
	}
	return out
}

// mergeSlashes takes the empty segments out, but for the one that a trailing
// slash leaves.
func mergeSlashes(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i, c := range text {
		if c != '/' || i == 0 || text[i-1] != '/' {
			out = append(out, c)
		}
	}
	return out
}

// resolveDots takes the segments "." and ".." out. Where such a segment is the
// last, RFC 3986 (section 5.2.4) leaves a trailing slash and most cleaners leave
// none: asDirectory chooses. An empty segment is a segment, as in the RFC;
// cleaners that think otherwise merge slashes first.
func resolveDots(text []byte, asDirectory bool) []byte {
	out := make([]byte, 0, len(text))
	for tail := text; len(tail) > 0; {
		var seg []byte
		seg, tail = cutSegment(tail)
		dots := string(seg) == "." || string(seg) == ".."
		if len(seg) == 2 && dots {
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
		}
		if !dots {
			out = append(append(out, '/'), seg...)
		} else if len(tail) == 0 && (asDirectory || len(out) == 0) {
			out = append(out, '/')
		}
	}
	return out
}

// cutSegment splits "/a/b" into "a" and "/b".
func cutSegment(text []byte) (seg, tail []byte) {
	if i := bytes.IndexByte(text[1:], '/'); i >= 0 {
		return text[1 : i+1], text[i+1:]
	}
	return text[1:], nil
}

// appendFold appends text with every letter replaced by the one that stands for
// all which are equal to it under Unicode simple folding (as in
// [strings.EqualFold]). That is never longer than the letter, so dst may be
// text[:0].
func appendFold(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError {
			dst = append(dst, text[i:i+size]...)
		} else {
			dst = utf8.AppendRune(dst, foldRune(r))
		}
		i += size
	}
	return dst
}

// foldRune is the least rune of those equal to r, in lower case if that is
// ASCII: U+212A, the Kelvin sign, becomes k.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
