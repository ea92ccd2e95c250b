package telemetry

import "example.com/forebay/cmd/forebay/internal/proxy"

// ShowSpool shows what stats returns: what is taken in of answers for clients that read
// slowly.
func (m *Metrics) ShowSpool(stats func() proxy.SpoolStats) {
	type st = proxy.SpoolStats
	m.registry.MustRegister(&figures[st]{stats, []figure[st]{
		gauge("forebay_spool_bytes", "Bytes of memory that hold answers which clients have not read yet. Only of gates with hold: upstream_done.",
			func(s st) float64 { return float64(s.Memory.Held) }),
		gauge("forebay_spool_limit_bytes", "How many there may be: spool.memory.",
			func(s st) float64 { return float64(s.Memory.Limit) }),
		gauge("forebay_spool_disk_bytes", "Bytes on disk that hold such answers. A file counts as long as it is large, until its answer has ended.",
			func(s st) float64 { return float64(s.Disk.Held) }),
		gauge("forebay_spool_disk_limit_bytes", "How many there may be: spool.disk.",
			func(s st) float64 { return float64(s.Disk.Limit) }),
		gauge("forebay_spool_answers", "Answers that are on their way through the spool.",
			func(s st) float64 { return float64(s.Answers) }),
		counter("forebay_spool_kept_total", "Answers that kept their slot while their client read, because there was no room for them.",
			func(s st) float64 { return float64(s.Kept) }),
		counter("forebay_spool_errors_total", "Errors of the spool's files: a full disk for instance. The answers were whole, unless what was written could not be read.",
			func(s st) float64 { return float64(s.Errors) }),
	}})
}
