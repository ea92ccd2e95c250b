package simulate

import (
	"time"

	"example.com/forebay/internal/admit"
)

// points counts what happens in each interval, and what could have.
type points struct {
	sim     *sim
	every   instant
	from    instant
	end     *event
	done    []Point
	offers  map[*route]float64 // calls of each route in this interval
	offer   float64
	answers float64
	refuses float64
	tries   float64
	waits   histogram
	areas   [][3]float64 // of each gate at the start of the interval, all instances together
}

func (p *points) begin(s *sim) {
	p.sim, p.offers = s, map[*route]float64{}
	p.every = instant(s.sc.Every)
	if p.every == 0 {
		p.every = max(1, instant(s.sc.For)/100)
	}
	p.areas = make([][3]float64, len(s.sc.Gates))
	p.end = s.agenda.add(p.point)
	s.agenda.set(p.end, p.every)
}

func (p *points) offered(c *call) {
	p.offers[c.route]++
	p.offer++
}

func (p *points) answered(*call)               { p.answers++ }
func (p *points) refused(*call, admit.Verdict) { p.refuses++ }

// point ends an interval.
func (p *points) point() {
	s := p.sim
	seconds := time.Duration(s.now - p.from).Seconds()
	if seconds <= 0 {
		return
	}
	pt := Point{
		From: time.Duration(p.from).Seconds(), Offered: p.offer / seconds, Attempts: p.tries / seconds,
		Goodput: p.answers / seconds, Refused: p.refuses / seconds, Waited: p.waits.quantile(.95).Seconds(),
		Ideal: p.offer / seconds * p.share(seconds),
		Limit: []float64{}, InFlight: []float64{}, Waiting: []float64{}, // [] in JSON where there is no gate
	}
	for i := range s.sc.Gates {
		var sum [3]float64
		for _, in := range s.instances {
			g := in.order[i]
			g.touch()
			sum[0], sum[1], sum[2] = sum[0]+g.area.limit, sum[1]+g.area.inFlight, sum[2]+g.area.waiting
		}
		pt.Limit = append(pt.Limit, (sum[0]-p.areas[i][0])/seconds)
		pt.InFlight = append(pt.InFlight, (sum[1]-p.areas[i][1])/seconds)
		pt.Waiting = append(pt.Waiting, (sum[2]-p.areas[i][2])/seconds)
		p.areas[i] = sum
	}
	p.done = append(p.done, pt)
	clear(p.offers)
	p.offer, p.answers, p.refuses, p.tries, p.waits, p.from = 0, 0, 0, 0, histogram{}, s.now
	s.agenda.set(p.end, s.now+p.every)
}

// share returns which part of this interval's calls could have been answered: all, unless
// some resource would have had to do more than the most it can.
func (p *points) share(seconds float64) float64 {
	part := 1.0
	for _, b := range p.sim.inOrder {
		asked := 0.0
		for _, name := range p.sim.sc.Routes {
			r := p.sim.routes[name.Name]
			for i, v := range r.Work {
				if r.visit[i] == b {
					asked += p.offers[r] * v.Takes.Mean()
				}
			}
		}
		if could := b.could(p.from, p.sim.now); asked > could {
			part = min(part, could/asked)
		}
	}
	return part
}

// finish sums up what counts.
func (p *points) finish(r *Result) {
	if p.sim.now > p.from {
		p.point()
	}
	r.Points = p.done
	for _, pt := range p.done {
		if instant(pt.From*1e9+.5) >= instant(p.sim.sc.WarmUp) {
			r.Ideal += pt.Ideal * min(time.Duration(p.every).Seconds(), p.sim.sc.For.Seconds()-pt.From)
		}
	}
}
