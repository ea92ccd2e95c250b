package verdict

import (
	"math"
	"math/bits"
)

// levelCount is enough for the most that a gate has: level 0 is one call alone, 1 two or
// three, 2 four to seven.
const levelCount = 20

// Levels sums how long calls held their slots, by how many ran as they ended: which shows
// whether calls get slower by each other.
type Levels [levelCount]Level

// Level is what the calls of one level held.
type Level struct {
	N    float32 // calls
	Held float32 // seconds, in all
	Log  float32 // of the seconds of each, in all
}

// Ended adds a call that held for so many seconds and ended beside others, itself
// included.
func (l *Levels) Ended(inFlight int, held float64) {
	l[levelOf(inFlight)].add(Level{1, float32(held), logOf(held)})
}

// logOf takes what is shorter than a clock shows for a microsecond.
func logOf(held float64) float32 { return float32(math.Log(max(held, 1e-6))) }

func (l *Level) add(o Level) {
	l.N += o.N
	l.Held += o.Held
	l.Log += o.Log
}

func levelOf(inFlight int) int { return min(bits.Len(uint(max(1, inFlight)))-1, levelCount-1) }

const (
	// remembered is how many calls a level stands for at most: so many later ones weigh as
	// much as all before. Half of it forgets the calm before a long storm too soon.
	remembered = 2000
	// enough calls of a level say something.
	enough = 30
)

// learn adds what ended in a second to what was learnt so far.
func (l *Levels) learn(ended *Levels) {
	if ended == nil {
		return
	}
	for i, e := range ended {
		at := &l[i]
		at.add(e)
		if at.N > remembered {
			share := remembered / at.N
			*at = Level{remembered, at.Held * share, at.Log * share}
		}
	}
}

// alone is how long calls take among few: of a level below that of now. known is whether
// there were enough.
func (l *Levels) alone(inFlight int32) (found Level, known bool) {
	for _, at := range l[:levelOf(int(inFlight))] {
		found.add(at)
	}
	return found, found.N >= enough
}

// crowded reports whether calls among more than that many were seen to take so many times
// as long as others.
func (l *Levels) crowded(limit int32, others Level, times float64) bool {
	for _, at := range l[levelOf(int(limit))+1:] {
		if at.N >= enough && math.Exp(float64(at.Log/at.N-others.Log/others.N)) >= times {
			return true
		}
	}
	return false
}
