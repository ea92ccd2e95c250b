package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseReply reads the answer of the [Script].
func ParseReply(s string) (Reply, error) {
	f := words(s)
	r := Reply{
		Epoch: f.uint(), Clock: f.millis(), Granted: f.uint(), Returned: f.uint(),
		Heard: f.uint(), Queued: f.int(), Lost: f.int(),
		Limit:    f.int(),
		Override: Override{Version: f.uint(), Limit: f.int(), For: f.millis()},
		Held:     f.int(), InUse: f.int(), Waiting: f.int(), Instances: f.int(), Share: f.int(),
		Contended: f.flag(), Learning: f.millis(),
		Reclaimed: f.uint(), LostTotal: f.uint(), Configured: f.int(), Differ: f.flag(),
		Slots: f.slots(),
	}
	if err := f.end(); err != nil {
		return Reply{}, fmt.Errorf("cluster: a reply of the ledger is %q: %w", s, err)
	}
	return r, nil
}

// appendReply appends what ParseReply reads.
func appendReply(b []byte, r *Reply) []byte {
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), ' ') }
	flag := func(f bool) {
		if f {
			number(1)
		} else {
			number(0)
		}
	}
	number(int64(r.Epoch))
	number(inMillis(r.Clock))
	number(int64(r.Granted))
	number(int64(r.Returned))
	number(int64(r.Heard))
	number(int64(r.Queued))
	number(int64(r.Lost))
	number(int64(r.Limit))
	number(int64(r.Override.Version))
	number(int64(r.Override.Limit))
	number(inMillis(r.Override.For))
	number(int64(r.Held))
	number(int64(r.InUse))
	number(int64(r.Waiting))
	number(int64(r.Instances))
	number(int64(r.Share))
	flag(r.Contended)
	number(inMillis(r.Learning))
	number(int64(r.Reclaimed))
	number(int64(r.LostTotal))
	number(int64(r.Configured))
	flag(r.Differ)
	if len(r.Slots) == 0 {
		return append(b, '-')
	}
	return appendSlots(b, r.Slots)
}

// String returns the reply as it is on the wire.
func (r Reply) String() string { return string(appendReply(nil, &r)) }

// News is what a [Message] says.
type News struct {
	// Kind is 'g' for units granted to the instance on whose channel it is, and on the
	// gate's own channel: 'e' for a new epoch, to which everybody is to speak at once;
	// 'c' for somebody that waits, while an instance was told that nobody does; 'n' for
	// another number of instances; 'l' for another limit.
	Kind    byte
	Epoch   uint64 // of g and e
	Granted uint64 // of g, in all so far
	Slots   []Slot // of g of a fenced gate: those that the ledger does not know to be heard of
	Count   int    // of n the instances, of l the limit
}

// ParseNews reads the text of a [Message].
func ParseNews(text string) (News, error) {
	f := words(text)
	n := News{}
	switch kind := f.next(); kind {
	case "g":
		n = News{Kind: 'g', Epoch: f.uint(), Granted: f.uint(), Slots: f.slots()}
	case "e":
		n = News{Kind: 'e', Epoch: f.uint()}
	case "c":
		n = News{Kind: 'c'}
	case "n", "l":
		n = News{Kind: kind[0], Count: f.int()}
	default:
		return News{}, fmt.Errorf("cluster: a message of the ledger is %q, which is none known here", text)
	}
	if err := f.end(); err != nil {
		return News{}, fmt.Errorf("cluster: a message of the ledger is %q: %w", text, err)
	}
	return n, nil
}

// fields are the words of a text, read one after the other; the first mistake is kept.
type fields struct {
	rest string
	err  error
}

func words(s string) *fields { return &fields{rest: s} }

func (f *fields) next() string {
	if f.rest == "" && f.err == nil {
		f.err = fmt.Errorf("it ends too early")
	}
	word, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	return word
}

func (f *fields) fail(err error) {
	if err != nil && f.err == nil {
		f.err = err
	}
}

func (f *fields) uint() uint64 {
	n, err := strconv.ParseUint(f.next(), 10, 64)
	f.fail(err)
	return n
}

func (f *fields) int() int {
	n, err := strconv.Atoi(f.next())
	f.fail(err)
	return n
}

func (f *fields) flag() bool { return f.int() != 0 }

func (f *fields) millis() time.Duration { return time.Duration(f.int()) * time.Millisecond }

// slots reads what appendSlots wrote, or a dash.
func (f *fields) slots() (slots []Slot) {
	word := f.next()
	if word == "-" || word == "" {
		return nil
	}
	for item := range strings.SplitSeq(word, ",") {
		number, fence, _ := strings.Cut(item, ":")
		n, err := strconv.Atoi(number)
		f.fail(err)
		slots = append(slots, Slot{Number: n, Fence: f.fence(fence)})
	}
	return slots
}

func (f *fields) fence(s string) uint64 {
	epoch, count, _ := strings.Cut(s, ".")
	e, err := strconv.ParseUint(epoch, 10, 64)
	f.fail(err)
	c, err := strconv.ParseUint(count, 10, 64)
	f.fail(err)
	return e<<fenceBits + c
}

func (f *fields) end() error {
	if f.err == nil && f.rest != "" {
		return fmt.Errorf("%q is left over", f.rest)
	}
	return f.err
}
