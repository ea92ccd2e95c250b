package telemetry

// ShowDeadlines shows what ignored returns.
func (m *Metrics) ShowDeadlines(ignored func() uint64) {
	m.registry.MustRegister(&figures[uint64]{ignored, []figure[uint64]{
		counter("forebay_deadlines_ignored_total", "Deadlines that callers sent, in grpc-timeout or in deadline.header, and that could not be read. They were ignored.",
			func(n uint64) float64 { return float64(n) }),
	}})
}
