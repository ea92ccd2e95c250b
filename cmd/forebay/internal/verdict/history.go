package verdict

// The times that a history has, each with its resolution. An hour is what one looks back
// at when something has begun to go wrong.
const (
	fineLen, fineSec     = 64, 1
	middleLen, middleSec = 60, 10
	coarseLen, coarseSec = 60, 60
)

// History is what one gate did in the last hour: a sample for each second of the last
// minute, for ten of the last ten minutes, for sixty before; 14 KiB. Make one with
// [NewHistory]; it is not safe for concurrent use.
type History struct {
	fine   [fineLen]Sample
	middle [middleLen]Sample
	coarse [coarseLen]Sample
	n      int // samples so far

	tens, sixties Sample // what is being put together
	levels        Levels
	terms         Terms
}

// Terms are what a gate is configured to.
type Terms struct {
	MaxWait   float64 // seconds; 0: nobody waits
	EarlyBack bool    // slots go back before the client has read its answer
	PerCaller bool    // calls may wait for others of their caller, while there are slots
}

// NewHistory returns an empty one.
func NewHistory() *History { return &History{} }

// Add adds what the gate did in the last second, under the given terms, and by level
// what the calls held that ended in it.
func (h *History) Add(s Sample, t Terms, ended *Levels) {
	h.terms = t
	h.levels.learn(ended)
	s.Seconds = fineSec
	before := h.at(0)
	h.fine[h.n%fineLen] = s
	h.n++
	now := h.at(0)
	now.holds = h.conditions()
	now.up = h.raised(before)
	h.tens.add(now)
	if h.n%middleSec == 0 {
		k := h.n / middleSec
		h.middle[k%middleLen], h.tens = h.tens, Sample{}
		h.sixties.add(&h.middle[k%middleLen])
		if k%(coarseSec/middleSec) == 0 {
			h.coarse[k/(coarseSec/middleSec)%coarseLen], h.sixties = h.sixties, Sample{}
		}
	}
}

// at returns the sample of so many seconds ago; an empty one where there is none.
func (h *History) at(ago int) *Sample {
	if ago >= min(h.n, fineLen) {
		return &Sample{CPU: unknownCPU}
	}
	return &h.fine[(h.n-1-ago)%fineLen]
}

// over returns the sum of the last seconds.
func (h *History) over(seconds int) (sum Sample) {
	for ago := min(seconds, h.n, fineLen) - 1; ago >= 0; ago-- {
		sum.add(h.at(ago))
	}
	return sum
}

// Samples returns what is kept, the oldest first: of the last minute by the second,
// before that by ten, before that by sixty. A second is in one of them.
func (h *History) Samples() (all []Sample) {
	seconds := min(h.n, fineLen)
	tens := h.n/middleSec + 1 // behind the last of them
	firstTen := max(1, tens-middleLen)
	lastTen := (h.n - seconds) / middleSec
	sixties := h.n/coarseSec + 1
	lastSixty := middleSec * (firstTen - 1) / coarseSec
	for k := max(1, sixties-coarseLen); k <= lastSixty; k++ {
		all = append(all, h.coarse[k%coarseLen])
	}
	for k := firstTen; k <= lastTen; k++ {
		all = append(all, h.middle[k%middleLen])
	}
	for ago := seconds - 1; ago >= 0; ago-- {
		all = append(all, *h.at(ago))
	}
	return all
}
