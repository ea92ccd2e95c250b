package verdict

import "math"

// Kind is one thing that can be wrong.
type Kind uint8

// The kinds, the one that explains the others first.
const (
	LeakSuspected Kind = iota // slots are held by calls that do not end
	RetryStorm                // callers come back before they were told to
	SlowReaders               // slots are held by calls whose clients do not read
	TooLax                    // so many run that the processor is too busy for each
	Elsewhere                 // calls wait for something else behind the gate
	TooStrict                 // what is behind has room, and calls are refused
	FastLane                  // calls that are to have a slot at once have to wait
	kindCount
)

var kindNames = [kindCount]string{
	"leak_suspected", "retry_storm", "slow_readers", "limit_too_lax", "bottleneck_elsewhere", "limit_too_strict", "fast_lane_in_danger",
}

// String returns the word that logs, metrics and /stats use: "limit_too_strict".
func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds returns the words of all kinds.
func Kinds() []string { return kindNames[:] }

// kinds is a set of them, and whether calls wait for long.
type kinds uint16

const waitsLong kinds = 1 << kindCount

func (k Kind) bit() kinds { return 1 << k }

const (
	unknownCPU = -1

	// window is how far back a look goes for whether something is wrong, in seconds.
	// Half of it is shorter than some bursts that a line absorbs; twice of it comes late
	// to who is awake already.
	window = 10
	// pressedFor is in how many of them slots have to be short.
	pressedFor = 6
	// lately is how far back a look goes for why: less, so that the calm before does not
	// count.
	lately = 5
	// raiseAfter looks in a row raise a verdict.
	raiseAfter = 2
	// clearAfter looks without take it back: what flaps every few seconds stays up.
	clearAfter = 10

	shortShare  = .02 // refused for want of a slot of all that came, that make a second a pressed one
	waitShare   = .5  // of max_wait, that the slowest twentieth waits, that make one
	waitsFor    = 8   // seconds of the window that make the early warning
	turnover    = .75 // of the slots, that calls which end have used, if slots are what is short
	fewestEnded = 10  // calls lately
	fewestCalls = 20  // calls in the window below which there is nothing to say

	slower    = 2   // times as long among many: something behind the gate is short
	swamped   = 3   // times as long with a busy processor: too many share it
	asFast    = 1.4 // times at most: nothing is short
	busyCPU   = .85 // and above: the processor is what is short
	idleCPU   = .75 // and below: it is not
	early     = .25 // of all that came, that make a storm
	blocked   = .4  // of the slots
	hangs     = .5  // of the slots, held for too long while nothing ends
	lateShare = .05 // of a fast lane's calls
	leakFrom  = .15 // of the slots, and two at least
)

// conditions returns what holds now. Where several would, the first explains the others.
func (h *History) conditions() (holds kinds) {
	now := h.over(window)
	if now.InFlight == 0 && now.Waiting == 0 && now.Arrived() == 0 {
		return 0
	}
	pressed := h.isPressed()
	if h.waits() {
		holds |= waitsLong
	}
	if h.fastLaneShort() {
		holds |= FastLane.bit()
	}
	switch {
	case now.Limit == 0: // closed: somebody wants it so
	case h.leaks(&now):
		holds |= LeakSuspected.bit()
	case h.storms(&now):
		holds |= RetryStorm.bit()
	case pressed && h.readersAreSlow():
		holds |= SlowReaders.bit()
	default:
		holds |= h.bottleneck(pressed)
	}
	return holds
}

// bottleneck says what is short: slots, the processor, or something else behind the
// gate.
func (h *History) bottleneck(pressed bool) kinds {
	now := h.over(lately)
	if h.isHanging(&now) {
		return Elsewhere.bit()
	}
	if now.Ended < fewestEnded {
		return 0
	}
	alone, known := h.levels.alone(now.InFlight)
	if !known {
		return 0
	}
	times := timesAs(&now, alone)
	switch {
	case times >= swamped && now.CPU >= busyCPU:
		return TooLax.bit()
	case !pressed:
		return 0
	case times >= slower && now.CPU < idleCPU:
		return Elsewhere.bit()
	case times <= asFast && now.CPU < idleCPU && h.refuses() && h.turnsOver(&now) && !h.levels.crowded(now.Limit, alone, slower):
		return TooStrict.bit()
	}
	return 0
}

// turnsOver reports whether the slots are used up by calls that end. If not, some are
// held by others, which a higher limit does not help: by Little's law slots times
// seconds are what all calls held.
func (h *History) turnsOver(now *Sample) bool {
	return now.Held >= turnover*float32(now.Limit*now.Seconds)
}

// timesAs is how many times as long calls took as others did.
func timesAs(now *Sample, others Level) float64 {
	return math.Exp(float64(now.HeldLog/float32(now.Ended) - others.Log/others.N))
}

// count is in how many seconds of the window something was so.
func (h *History) count(is func(*Sample) bool) (n int) {
	for ago := range window {
		if is(h.at(ago)) {
			n++
		}
	}
	return n
}

// isPressed reports whether slots are short, and not for a moment: calls are refused, or
// wait for long.
func (h *History) isPressed() bool {
	return h.count(func(s *Sample) bool { return refusesAt(s) || h.waitsAt(s) }) >= pressedFor && h.over(window).Arrived() >= fewestCalls
}

func (h *History) refuses() bool { return h.count(refusesAt) >= pressedFor }

func refusesAt(s *Sample) bool {
	return s.Short > 0 && float32(s.Short) >= shortShare*float32(s.Arrived())
}

func (h *History) waitsAt(s *Sample) bool {
	return h.terms.MaxWait > 0 && !h.terms.PerCaller && float64(s.WaitP95) >= waitShare*h.terms.MaxWait
}

// waits is the early warning: calls wait for a good part of their patience, nearly all
// the time.
func (h *History) waits() bool {
	return h.count(h.waitsAt) >= waitsFor && h.over(window).Arrived() >= fewestCalls
}

// leaks: some slots are held for far too long, and others that came after them have
// ended as ever. Else what is behind the gate hangs.
func (h *History) leaks(now *Sample) bool {
	fewest := h.fewestStale(raiseAfter)
	if fewest < 2 || float32(fewest) < leakFrom*float32(now.Limit) || 2*h.fewestBlocked() > fewest {
		return false
	}
	since := int(now.Oldest) - 1 // the oldest had begun
	return h.over(since).Ended >= uint32(now.Limit) || h.at(1).up&LeakSuspected.bit() != 0
}

// isHanging: many slots are held for far too long, and nothing ends.
func (h *History) isHanging(now *Sample) bool {
	return float32(h.fewestStale(raiseAfter)) >= hangs*float32(now.Limit) && h.over(raiseAfter).Ended == 0
}

func (h *History) fewestStale(seconds int) int32 {
	fewest := h.at(0).Stale
	for ago := range seconds {
		fewest = min(fewest, h.at(ago).Stale)
	}
	return fewest
}

// fewestBlocked is how many calls at least waited for their clients in the last seconds.
func (h *History) fewestBlocked() int32 {
	fewest := h.at(0).Blocked
	for ago := range raiseAfter {
		fewest = min(fewest, h.at(ago).Blocked)
	}
	return fewest
}

// storms: many of those that come were told to come later.
func (h *History) storms(now *Sample) bool {
	return now.Short > 0 && now.Early >= fewestCalls && float32(now.Early) >= early*float32(now.Arrived())
}

// readersAreSlow: many slots are held by calls that wait for their clients to read.
func (h *History) readersAreSlow() bool {
	return !h.terms.EarlyBack && float32(h.fewestBlocked()) >= blocked*float32(h.at(0).Limit)
}

// fastLaneShort: calls of a fast lane, for which slots are kept, have to wait all the
// same, and not just now and then.
func (h *History) fastLaneShort() bool {
	now := h.over(window)
	late := h.count(func(s *Sample) bool { return s.FastLate > 0 })
	return now.Reserved > 0 && late >= pressedFor && float32(now.FastLate) >= lateShare*float32(now.Fast)
}

// raised returns what is up, from what was up before and what has held lately.
func (h *History) raised(before *Sample) (up kinds) {
	always, ever := ^kinds(0), kinds(0)
	for ago := range clearAfter {
		holds := h.at(ago).holds
		ever |= holds
		if ago < raiseAfter {
			always &= holds
		}
	}
	up = always | before.up&ever
	for k := range kindCount - 1 { // the first explains the others; the fast lane is apart
		if up&k.bit() != 0 && always&k.bit() != 0 {
			return up & (k.bit() | FastLane.bit() | waitsLong)
		}
	}
	return up
}
