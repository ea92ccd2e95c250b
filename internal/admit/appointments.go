package admit

import (
	"math"
	"slices"
	"time"
)

// book knows whom of those refused in a lane somebody has told to come back when, so
// that they find room and do not come together. Clients read whole seconds, and so come
// back at the part of a second at which they were refused: a crowd that came at once
// would come again at once, second after second, if the book had only seconds. It has
// twentieths.
type book struct {
	slot    int64              // the present one, since 1970
	slots   [bookSlots]int32   // promised in each to come, in a ring
	seconds [bookSeconds]int32 // and in each second

	asked [slotsPerSecond]int32 // for appointments, in each slot of the last second, in a ring
	sum   int32                 // of them
}

const (
	slotsPerSecond = 20
	bookSeconds    = 128 // how far it reaches, the present second included
	bookSlots      = bookSeconds * slotsPerSecond
)

func slotOf(now time.Time) int64 {
	return max(0, now.UnixNano()) / int64(time.Second/slotsPerSecond)
}

// advance brings the book up to now. It returns how many were promised to come since.
func (b *book) advance(slot int64) (due int32) {
	if slot-b.slot > bookSlots || b.slot-slot > slotsPerSecond { // it is new, or the clock has jumped
		*b = book{slot: slot}
	}
	for b.slot < slot {
		b.slot++
		promised := &b.slots[b.slot%bookSlots]
		due += *promised
		b.seconds[b.slot/slotsPerSecond%bookSeconds] -= *promised
		*promised = 0
		asked := &b.asked[b.slot%slotsPerSecond]
		b.sum -= *asked
		*asked = 0
	}
	return due
}

// crowding counts one more who asks, and returns the part of the last second's that have
// asked in this slot: 1 if they came at once, a twentieth if they come evenly.
func (b *book) crowding() float64 {
	b.asked[b.slot%slotsPerSecond]++
	b.sum++
	return float64(b.asked[b.slot%slotsPerSecond]) / float64(b.sum)
}

// newcomers counts who comes to a lane without having been told to.
type newcomers struct {
	second int64
	calls  [newcomerSeconds]int32 // in each of the last seconds, in a ring, less those who were told to
	rate   float64                // a second, of which half of the last seconds had fewer
	all    int                    // seconds that are counted, up to the ring's
}

// newcomerSeconds is over how many seconds, the present one included, the middle is taken
// of what comes in one. A burst that is shorter than half of that says nothing of what
// will come: who is refused in it is told of seconds in which there is room again. With
// half of it a burst of ten seconds counts as the usual, with twice it an overload that
// stays is taken for a burst for half a minute, and its callers come in vain.
const newcomerSeconds = 33

// come counts n calls, of which so many were told to.
func (c *newcomers) come(now time.Time, n, told int32) {
	second := max(0, now.Unix())
	if d := second - c.second; d > 0 || d < -newcomerSeconds {
		c.turn(second)
	}
	c.calls[c.second%newcomerSeconds] += n - told
}

// turn begins another second.
func (c *newcomers) turn(second int64) {
	if d := second - c.second; d < 0 || d >= newcomerSeconds {
		*c = newcomers{second: second}
		return
	}
	for c.second < second {
		c.second++
		c.calls[c.second%newcomerSeconds] = 0
		c.all = min(c.all+1, newcomerSeconds-1)
	}
	var last [newcomerSeconds - 1]int32
	for i := range c.all {
		last[i] = max(0, c.calls[(second-1-int64(i))%newcomerSeconds])
	}
	slices.Sort(last[:c.all])
	c.rate = float64(last[c.all/2])
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
// and what is promised to others, in this lane and those above it. One twentieth of a
// second is told to as large a part of those who find room in it as have come in one, and
// to no more than find a place at once. While the pace is not known it is lo
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
		if other.Rank <= l.Rank {
			other.comes(now, 0)
			spare -= other.newcomers.rate
		}
	}
	spare = min(max(spare, bookLeast*mu, 1), math.MaxInt32)
	together := min(spare*l.book.crowding(), float64(m.limit+m.MaxWaiting())/2) // half, or those who come first find it full
	base := min(max(lo, WholeSeconds(ahead)), hi)
	for n := base; n <= min(hi, bookSeconds-2); n++ {
		slot, second := m.promised(l, n)
		if float64(slot) < max(together, spare/slotsPerSecond, 1) && float64(second) < spare {
			at := l.book.slot + int64(n)*slotsPerSecond
			l.book.slots[at%bookSlots]++
			l.book.seconds[at/slotsPerSecond%bookSeconds]++
			return n
		}
	}
	if base > bookSeconds-2 {
		return RetryAfter(ahead, lo, hi, random)
	}
	return base + random(hi-base+1) // all is promised: as evenly as it can be
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
	told := int32(0)
	if l.book != nil {
		told = l.book.advance(slotOf(now))
	}
	l.newcomers.come(now, int32(n), told)
}
