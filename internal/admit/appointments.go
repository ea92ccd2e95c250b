package admit

import (
	"math"
	"time"
)

// book says to whom of those refused in a lane it has said to come back when, so that they
// find room and do not come together. Clients read whole seconds, and so come back at the
// part of a second at which they were refused: a crowd that came at once would come again
// at once, second after second, if the book had only seconds. It has twentieths.
type book struct {
	slot    int64              // the present one, since 1970
	slots   [bookSlots]int32   // promised in each to come, in a ring
	seconds [bookSeconds]int32 // and in each second
	came    [bookMemory]int32  // calls in each of the last seconds, in a ring
	due     [bookMemory]int32  // and how many of them were promised to
}

const (
	slotsPerSecond = 20
	bookSeconds    = 64 // how far it reaches, the present second included
	bookSlots      = bookSeconds * slotsPerSecond
	// bookMemory is over how many seconds, the present one included, calls are counted
	// that come first. With half of it a burst is promised its own time again, with twice
	// it those refused in a spike wait although it is over.
	bookMemory = 11
)

func slotOf(now time.Time) int64 {
	return max(0, now.UnixNano()) / int64(time.Second/slotsPerSecond)
}

// advance brings the book up to now.
func (b *book) advance(now time.Time) {
	slot := slotOf(now)
	if slot-b.slot > bookSlots || b.slot-slot > slotsPerSecond { // it is new, or the clock has jumped
		*b = book{slot: slot}
	}
	for b.slot < slot {
		b.slot++
		second := b.slot / slotsPerSecond
		if b.slot%slotsPerSecond == 0 {
			b.came[second%bookMemory], b.due[second%bookMemory] = 0, 0
		}
		promised := &b.slots[b.slot%bookSlots]
		b.due[second%bookMemory] += *promised
		b.seconds[second%bookSeconds] -= *promised
		*promised = 0
	}
}

// first returns how many calls a second come that nobody has told to come.
func (b *book) first() float64 {
	n, present := int32(0), b.slot/slotsPerSecond%bookMemory
	for i := range b.came {
		if int64(i) != present {
			n += max(0, b.came[i]-b.due[i])
		}
	}
	return float64(n) / (bookMemory - 1)
}

// Parts of what leaves in a second, for those who come back: what those who come first
// leave of nine tenths, and a fifth at least, or a gate that is always overloaded would
// send everybody to its last second.
const (
	bookPart  = .9
	bookLeast = .2
)

// Appoint returns in how many whole seconds, lo to hi, a refused call of a lane had best
// come back: when the line of now is over, and there is room beside those who come first
// and what is promised to others, in this lane and those above it. No more are told one
// twentieth of a second than find a place at once. While the pace is not known it is lo
// and a random part, as [RetryAfter] says. random returns a uniform number in [0, n).
func (m *Machine) Appoint(now time.Time, l *Lane, lo, hi int, random func(n int) int) int {
	l = m.lane(l)
	ahead, known := m.Ahead(l)
	if !known {
		return RetryAfter(ahead, lo, hi, random)
	}
	if l.book == nil {
		l.book = &book{slot: slotOf(now)}
	}
	mu, _ := m.rate.perSecond()
	spare := bookPart * mu
	for _, other := range m.lanes {
		if other.book != nil && other.Rank <= l.Rank {
			other.book.advance(now)
			spare -= other.book.first()
		}
	}
	spare = min(max(spare, bookLeast*mu, 1), math.MaxInt32)
	together := max((m.limit+m.MaxWaiting())/2, int(spare)/slotsPerSecond, 1) // half, or those who come first find it full
	base := min(max(lo, WholeSeconds(ahead)), hi)
	for n := base; n <= min(hi, bookSeconds-2); n++ {
		slot, second := m.promised(l, n)
		if int(slot) < together && float64(second) < spare {
			at := l.book.slot + int64(n)*slotsPerSecond
			l.book.slots[at%bookSlots]++
			l.book.seconds[at/slotsPerSecond%bookSeconds]++
			return n
		}
	}
	if base > bookSeconds-2 {
		return RetryAfter(ahead, lo, hi, random)
	}
	return hi - random((hi-base)/2+1) // all is promised: somewhere in the later half
}

// promised returns how many of a lane and those above it are told to come in so many
// seconds, and in the second around that.
func (m *Machine) promised(l *Lane, seconds int) (slot, second int32) {
	at := l.book.slot + int64(seconds)*slotsPerSecond
	for _, other := range m.lanes {
		if other.book != nil && other.Rank <= l.Rank {
			slot += other.book.slots[at%bookSlots]
			second += other.book.seconds[at/slotsPerSecond%bookSeconds]
		}
	}
	return slot, second
}

// comes counts calls of a lane for its book.
func (l *Lane) comes(now time.Time, n int) {
	if b := l.book; b != nil {
		b.advance(now)
		b.came[b.slot/slotsPerSecond%bookMemory] += int32(n)
	}
}
