// Package telemetry says what the program does: a log line for a decision, and
// metrics.
//
// A [Log] is where lines go. Its observer is given to the gates and turns events
// into lines; its loggers are for everything else that the program has to say.
// [Metrics] is the registry that a scrape reads.
//
//	log, err := telemetry.Open(telemetry.Options{To: "stderr"})
//	…
//	defer log.Close()
//	metrics := telemetry.NewMetrics(log)
//	gates, groups, err := config.Build(log.Observer(), metrics.Gates)
//
// # What it promises
//
// Everything is safe for concurrent use. No line ever waits for the destination on
// the goroutine that caused it: lines go through a bounded queue to one writer. A
// full disk, a stuck pipe or a silent syslog costs lines, which are counted and said
// on the next one, and never a request's time. Refusals make at most ten lines a
// second and gate, however many there are.
//
// What a client sends cannot break a line or a terminal: a line is one JSON object,
// controls and direction marks are escaped, long values are cut off. An address is
// personal data and is shortened unless the configuration says otherwise.
//
// # What it does not do
//
// It keeps no lines for a destination that is away, and it does not sync to disk.
package telemetry
