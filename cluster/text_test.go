package cluster

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/ledger")

// TestLedgerScripts plays testdata/ledger on the model.
func TestLedgerScripts(t *testing.T) { PlayScripts(t, "t:{g}", nil) }

// PlayScripts plays testdata/ledger on the model and the other side, if there is one.
// A script has one event a line,
//
//	TIME WHO [WORDS] -> ANSWER
//
// with comments after #. WHO is an instance that makes a request, or "server", "clock",
// "wipe", "spoil" or "state". An instance remembers its figures from its last answer, and
// its terms from its last words; each line says the rest: see [reader.words]. One that
// "beats" speaks every quarter of its lease since it last did.
func PlayScripts(t *testing.T, key string, other Side) {
	files, err := filepath.Glob("testdata/ledger/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts:", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{
				twins: twins{t: t, key: key, other: other, checks: checks{polite: true}},
				f:     facts{identity: "redis-1", uptime: time.Hour}, members: map[string]*teller{},
			}
			r.wipe()
			got := r.play(script)
			if *update && other == nil {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, script) {
				t.Errorf("%s plays as\n%s", file, got)
			}
		})
	}
}

// reader plays one script.
type reader struct {
	twins
	f       facts
	now     time.Duration
	shift   time.Duration // of the server's clock
	members map[string]*teller
	last    *Request
}

// teller is an instance as a script knows it.
type teller struct {
	terms    Request
	spoke    time.Duration
	epoch    uint64
	granted  uint64
	returned uint64
	slots    []Slot
	line     []waiting
	calls    uint64
	heard    uint64
	clock    int64 // of the last answer; below 0: there was none
	share    int   // as it said
}

func (r *reader) play(script []byte) []byte {
	var out bytes.Buffer
	in := bufio.NewScanner(bytes.NewReader(script))
	for n := 1; in.Scan(); n++ {
		event, _, _ := strings.Cut(in.Text(), "->")
		event = strings.TrimSpace(event)
		if event == "" || strings.HasPrefix(event, "#") {
			fmt.Fprintln(&out, in.Text())
			continue
		}
		words := strings.Fields(event)
		at, err := time.ParseDuration(words[0])
		if err != nil || len(words) < 2 {
			r.t.Fatalf("line %d: %q is not TIME WHO [WORDS]", n, event)
		}
		r.now = at
		answer := r.event(words[1], words[2:])
		fmt.Fprintln(&out, strings.TrimSpace(event+" -> "+answer))
	}
	return out.Bytes()
}

func (r *reader) event(who string, words []string) string {
	r.f.wall = 1_700_000_000*time.Second + r.now + r.shift
	switch who {
	case "server":
		return r.server(words)
	case "clock":
		r.shift += duration(r.t, words[0])
		return "ok"
	case "wipe":
		r.wipe()
		return "ok"
	case "spoil":
		r.spoil(number(r.t, words[0]))
		return "ok"
	case "state":
		return r.state()
	}
	m := r.members[who]
	if m == nil {
		m = &teller{clock: -1, terms: Request{Instance: who, Host: "host-" + who, Limit: 4, Lease: 2 * time.Second}}
		r.members[who] = m
	}
	if len(words) > 0 && words[0] == "beats" {
		return r.beats(m)
	}
	m.spoke = r.now
	return r.says(m, words)
}

// beats has the instance speak every quarter of its lease since it last did, up to now.
func (r *reader) beats(m *teller) (answer string) {
	for end := r.now; m.spoke < end; {
		m.spoke = min(end, m.spoke+m.terms.Lease/4)
		r.f.wall = 1_700_000_000*time.Second + m.spoke + r.shift
		answer = r.says(m, nil)
	}
	return answer
}

// server says what the ledger learns of it.
func (r *reader) server(words []string) string {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "identity":
			r.f.identity = value
		case "uptime":
			r.f.uptime = duration(r.t, value)
		case "subscribed":
			r.f.blind = value == "unknown"
			r.f.subscribed = strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
		default:
			r.t.Fatalf("server has no %q", w)
		}
	}
	return "ok"
}

// says makes a request with the words, and the instance hears the answer if it is not
// lost.
func (r *reader) says(m *teller, words []string) string {
	m.terms.Number++
	q := m.terms
	q.Key, q.Contact, q.Share = r.key, m.clock, m.share
	lost, again := false, false
	for _, w := range words {
		switch w {
		case "lost":
			lost = true
		case "again": // the last request once more
			again = true
		default:
			r.words(m, &q, w)
		}
	}
	m.fill(&q)
	if again {
		m.terms.Number--
		q = *r.last
	}
	r.last = &q
	reply, told := r.exchange(r.f, &q)
	if !lost && !again {
		m.hears(&q, &reply)
	}
	for _, message := range told {
		_, name, _ := strings.Cut(message.Channel, r.key+":")
		if other := r.members[name]; other != nil {
			other.pushed(r.t, message)
		}
	}
	answer := shownReply(&reply)
	if r.l.withheld > 0 {
		answer += fmt.Sprintf(", %d withheld", r.l.withheld)
	}
	return answer + r.shownNews(told)
}

// words reads one word: a term that stays, or something that is said once. give=N gives
// units back, alone says that it uses its share and may=N how much that is, where it is
// not what it was told, contact=N which answer it heard, wait=COSTS has calls join the line, with an a for those that only ask;
// left=NUMBERS has calls leave it.
func (r *reader) words(m *teller, q *Request, word string) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "limit":
		m.terms.Limit = number(r.t, value)
		q.Limit = m.terms.Limit
	case "lease":
		m.terms.Lease = duration(r.t, value)
		q.Lease = m.terms.Lease
	case "withhold":
		m.terms.Withhold = duration(r.t, value)
		q.Withhold = m.terms.Withhold
	case "minshare":
		m.terms.MinShare = number(r.t, value)
		q.MinShare = m.terms.MinShare
	case "fenced":
		m.terms.Fenced, q.Fenced = true, true
	case "give":
		n := number(r.t, value)
		m.returned += uint64(n)
		m.slots = m.slots[min(n, len(m.slots)):]
	case "wait":
		for cost := range strings.SplitSeq(value, ",") {
			m.calls++
			plain := strings.TrimSuffix(cost, "a")
			m.line = append(m.line, waiting{m.calls, number(r.t, plain), plain != cost})
		}
	case "left":
		for call := range strings.SplitSeq(value, ",") {
			gone := uint64(number(r.t, call))
			m.line = slices.DeleteFunc(m.line, func(c waiting) bool { return c.number == gone })
		}
	case "spare":
		q.Spare = number(r.t, value)
	case "alone": // it uses its share
		q.Contact = 0
	case "contact":
		q.Contact = int64(number(r.t, value))
	case "may":
		q.Share = number(r.t, value)
	case "claim":
		q.Claim = number(r.t, value)
	case "override": // VERSION:LIMIT[:FOR]
		part := strings.Split(value, ":")
		q.Override = Override{Version: uint64(number(r.t, part[0])), Limit: number(r.t, part[1])}
		if len(part) > 2 {
			q.Override.For = duration(r.t, part[2])
		}
	case "leaves":
		q.Leaving = true
	default:
		r.t.Fatalf("%q is no word", word)
	}
}

// fill says what the instance holds, and who waits.
func (m *teller) fill(q *Request) {
	q.Epoch, q.Granted, q.Returned, q.Slots = m.epoch, m.granted, m.returned, slices.Clone(m.slots)
	q.InUse, q.Waiting = int(m.granted-m.returned), len(m.line)
	if q.Claim == 0 {
		q.Claim = q.InUse
	}
	for _, c := range m.line {
		if c.number <= m.heard {
			q.Standing = append(q.Standing, Span{First: c.number, Last: c.number})
		} else {
			q.Arrived = append(q.Arrived, Run{First: c.number, Calls: 1, Cost: c.cost, Ask: c.ask})
		}
	}
}

func (m *teller) hears(q *Request, reply *Reply) {
	m.lent(int(reply.Granted - min(reply.Granted, max(m.granted, reply.Returned))))
	m.epoch, m.granted, m.returned, m.slots = reply.Epoch, reply.Granted, reply.Returned, reply.Slots
	m.clock, m.share = reply.Clock, reply.Share
	m.heard = max(m.heard, reply.Heard)
	m.line = slices.DeleteFunc(m.line, func(c waiting) bool { return c.ask && c.number <= m.heard })
}

func (m *teller) pushed(t testing.TB, message Message) {
	news, err := ParseNews(message.Text)
	if err != nil {
		t.Fatal(err)
	}
	if news.Kind == 'g' && news.Epoch == m.epoch && news.Granted > m.granted {
		m.lent(int(news.Granted - m.granted))
		m.granted = news.Granted
		for _, s := range news.Slots {
			if !slices.Contains(m.slots, s) {
				m.slots = append(m.slots, s)
			}
		}
	}
}

// lent lets in whoever the units were for.
func (m *teller) lent(units int) {
	for len(m.line) > 0 && m.line[0].cost <= units {
		units -= m.line[0].cost
		m.line = m.line[1:]
	}
}

func shownReply(r *Reply) string {
	s := fmt.Sprintf("holds %d, %d of %d lent, share %d of %d", r.Granted-r.Returned, r.Held, r.Limit, r.Share, r.Instances)
	say := func(when bool, format string, args ...any) {
		if when {
			s += ", " + fmt.Sprintf(format, args...)
		}
	}
	say(r.Queued > 0, "queued %d", r.Queued)
	say(r.Contended, "contended")
	say(r.Learning > 0, "learning %v", r.Learning)
	say(r.Lost > 0, "lost %d", r.Lost)
	say(r.Reclaimed > 0, "reclaimed %d", r.Reclaimed)
	say(r.Override.Limit >= 0, "overridden")
	for _, slot := range r.Slots {
		s += ", " + shownSlot(slot)
	}
	return s
}

func shownSlot(s Slot) string {
	return fmt.Sprintf("slot %d fence +%d.%d", s.Number, s.Fence>>fenceBits-1_700_000_000_000, s.Fence&(1<<fenceBits-1))
}

func (r *reader) shownNews(told []Message) (s string) {
	for _, m := range told {
		to := "all"
		if _, name, one := strings.Cut(m.Channel, r.key+":"); one {
			to = name
		}
		news, err := ParseNews(m.Text)
		if err != nil {
			r.t.Fatal(err)
		}
		s += fmt.Sprintf("; %s: ", to)
		switch news.Kind {
		case 'g':
			s += fmt.Sprintf("granted %d", news.Granted)
			for _, slot := range news.Slots {
				s += ", " + shownSlot(slot)
			}
		case 'e':
			s += fmt.Sprintf("epoch %+d", int64(news.Epoch)-1_700_000_000_000)
		case 'c':
			s += "contended"
		case 'n':
			s += fmt.Sprintf("%d instances", news.Count)
		case 'l':
			s += fmt.Sprintf("limit %d", news.Count)
		}
	}
	return s
}

// state is what people are shown.
func (r *reader) state() string {
	st, err := ParseState(r.l.Fields())
	if err != nil {
		r.t.Fatal(err)
	}
	s := fmt.Sprintf("%d of %d lent, %d in line", st.Held, st.Limit, st.Queued)
	for _, m := range st.Members {
		s += fmt.Sprintf("; %s holds %d, seen %v ago, lease %v", m.ID, m.Held, m.Seen, m.Lease)
	}
	return s
}

func number(t testing.TB, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t testing.TB, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
