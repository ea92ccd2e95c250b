package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

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
	w := words{rest: text}
	n := News{}
	switch kind := w.next(); kind {
	case "g":
		n = News{Kind: 'g', Epoch: w.uint(), Granted: w.uint(), Slots: w.slots()}
	case "e":
		n = News{Kind: 'e', Epoch: w.uint()}
	case "c":
		n = News{Kind: 'c'}
	case "n", "l":
		n = News{Kind: kind[0], Count: int(w.uint())}
		if n.Count > maxUnits {
			w.fail(fmt.Errorf("%d are too many", n.Count))
		}
	default:
		return News{}, fmt.Errorf("cluster: a message of the ledger is %q, which is none known here", text)
	}
	if w.err == nil && w.rest != "" {
		w.err = fmt.Errorf("%q is left over", w.rest)
	}
	if w.err != nil {
		return News{}, fmt.Errorf("cluster: a message of the ledger is %q: %w", text, w.err)
	}
	return n, nil
}

// words are the words of a text, read one after the other; the first mistake is kept.
type words struct {
	rest string
	err  error
}

func (w *words) next() string {
	word, rest, _ := strings.Cut(w.rest, " ")
	w.rest = rest
	return word
}

func (w *words) fail(err error) {
	if err != nil && w.err == nil {
		w.err = err
	}
}

func (w *words) uint() uint64 {
	n, err := strconv.ParseUint(w.next(), 10, 63)
	w.fail(err)
	return n
}

// slots reads NUMBER:FENCE,... or a dash.
func (w *words) slots() (slots []Slot) {
	word := w.next()
	if word == "-" {
		return nil
	}
	for item := range strings.SplitSeq(word, ",") {
		number, fence, _ := strings.Cut(item, ":")
		n, err := strconv.Atoi(number)
		w.fail(err)
		f, err := parseFence(fence)
		w.fail(err)
		slots = append(slots, Slot{Number: n, Fence: f})
	}
	return slots
}

// slotsText is what slots reads.
func slotsText(slots []Slot) string {
	if len(slots) == 0 {
		return "-"
	}
	items := make([]string, len(slots))
	for i, s := range slots {
		items[i] = strconv.Itoa(s.Number) + ":" + fenceText(s.Fence)
	}
	return strings.Join(items, ",")
}
