package telemetry

import "example.com/forebay"

// ShowIntake shows what stats returns: what is held, and thrown away, of requests that
// do not run.
func (m *Metrics) ShowIntake(stats func() forebay.IntakeStats) {
	type in = forebay.IntakeStats
	m.registry.MustRegister(&figures[in]{stats, []figure[in]{
		gauge("forebay_intake_bytes", "Bytes of bodies that are held in memory: read ahead in line, or before their slot.",
			func(s in) float64 { return float64(s.Bytes.Held) }),
		gauge("forebay_intake_limit_bytes", "How many there may be: intake.max_bytes.",
			func(s in) float64 { return float64(s.Bytes.Limit) }),
		counter("forebay_intake_refused_total", "How often there was no room for more of a body. It came later, then: nobody was turned away for it.",
			func(s in) float64 { return float64(s.Bytes.Refused) }),
		gauge("forebay_discarding", "Connections of refused requests the rest of whose body is being thrown away.",
			func(s in) float64 { return float64(s.Discarding) }),
		gauge("forebay_discard_promised_bytes", "How many bytes are to be thrown away of them at most.",
			func(s in) float64 { return float64(s.Promised.Held) }),
		gauge("forebay_discard_limit_bytes", "How many that may be: intake.discard_total.",
			func(s in) float64 { return float64(s.Promised.Limit) }),
		counter("forebay_discarded_bytes_total", "Bytes that were thrown away.",
			func(s in) float64 { return float64(s.Discarded) }),
		counter("forebay_discard_cut_total", "Refused bodies whose end was not waited for, so that some clients see a broken connection: too long, too slow, or too many at one time.",
			func(s in) float64 { return float64(s.Cut) }),
		counter("forebay_slow_bodies_total", "Bodies that came too slowly, by the rules of upload, and were answered 408.",
			func(s in) float64 { return float64(s.Slow) }),
	}})
}
