package promgate

import (
	"math/rand/v2"
	"testing"
	"time"

	"example.com/forebay"
)

// history is a gate that somebody made up, second by second.
type history struct {
	inFlight, waiting         int
	peakInFlight, peakWaiting []int // highest of each second
}

// second lets a few calls come and go and reports what a gate would.
func (h *history) second(random *rand.Rand, p *peaks) {
	inFlight, waiting := h.inFlight, h.waiting
	for range random.IntN(4) {
		e := forebay.Event{Kind: forebay.EventDecided, Decision: forebay.Accepted}
		switch random.IntN(4) {
		case 0: // starts at once
			h.inFlight++
		case 1: // ends
			if h.inFlight == 0 {
				continue
			}
			h.inFlight--
			e.Kind = forebay.EventReleased
		case 2: // joins the line, which no event tells
			h.waiting++
			waiting = max(waiting, h.waiting)
			continue
		case 3: // starts from the line
			if h.waiting == 0 {
				continue
			}
			h.waiting--
			h.inFlight++
			e.Waited = time.Second
		}
		e.InFlight, e.Waiting = h.inFlight, h.waiting
		inFlight = max(inFlight, h.inFlight)
		p.note(&e)
	}
	h.peakInFlight = append(h.peakInFlight, inFlight)
	h.peakWaiting = append(h.peakWaiting, waiting)
}

func highest(seconds []int, from int) (top int64) {
	for _, n := range seconds[max(0, from):] {
		top = max(top, int64(n))
	}
	return top
}

// A peak misses nothing of the last minute, and shows nothing that is older than
// a minute before the scrape that came before it.
func TestPeaksCoverTheWindow(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		start := time.Unix(0, 0)
		var p peaks
		var h history
		between := 1 + random.IntN(100)
		p.turn(start)
		widest, last := 0, 0
		for second := 1; second < 1000; second++ {
			h.second(random, &p)
			if random.IntN(between) != 0 {
				continue
			}
			widest, last = max(widest, second-last, int(peakStep.Seconds())), second
			p.turn(start.Add(time.Duration(second) * time.Second))
			inFlight, waiting := p.read(&forebay.Stats{InUse: h.inFlight, Waiting: h.waiting})
			minute, oldest := second-60, second-60-2*widest
			check := func(what string, got int64, seconds []int) {
				if low, high := highest(seconds, minute), highest(seconds, oldest); got < low || got > high {
					t.Fatalf("seed %d, second %d: %s %d, want %d to %d", seed, second, what, got, low, high)
				}
			}
			check("in flight", inFlight, h.peakInFlight)
			check("waiting", waiting, h.peakWaiting)
			if len(p.past) > 13 {
				t.Fatalf("seed %d: %d pieces", seed, len(p.past))
			}
		}
	}
}
