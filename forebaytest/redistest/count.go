package redistest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Count is how often a command was called, and the processor time that it took.
type Count struct {
	Calls  int
	Micros int // in sum
	Failed int // with an error
}

// Counts are counts by command, in lower case, subcommands as "config|get". What
// scripts call is counted too.
type Counts map[string]Count

// Counts returns the commands that the server has executed, without those that
// [Server.Counts] and [Server.Info] themselves send.
func (s *Server) Counts() Counts {
	s.t.Helper()
	counts := Counts{}
	for name, value := range s.Info("commandstats") {
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok || command == "info" || command == "auth" {
			continue
		}
		var c Count
		for field := range strings.SplitSeq(value, ",") {
			key, number, _ := strings.Cut(field, "=")
			n, _ := strconv.Atoi(number)
			switch {
			case key == "calls":
				c.Calls += n
			case key == "usec":
				c.Micros += n
			case strings.HasSuffix(key, "_calls"): // rejected, failed
				c.Failed += n
			}
		}
		counts[command] = c
	}
	return counts
}

// Since returns what has been called since an earlier count. Commands that were not
// are left out.
func (c Counts) Since(earlier Counts) Counts {
	d := Counts{}
	for name, now := range c {
		then := earlier[name]
		now.Calls -= then.Calls
		now.Micros -= then.Micros
		now.Failed -= then.Failed
		if now.Calls != 0 || now.Failed != 0 {
			d[name] = now
		}
	}
	return d
}

// Calls returns how many commands were called.
func (c Counts) Calls() (n int) {
	for _, one := range c {
		n += one.Calls
	}
	return n
}

// String lists the commands with their calls.
func (c Counts) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		words = append(words, name+"="+strconv.Itoa(c[name].Calls))
	}
	return strings.Join(words, " ")
}

// Connections returns the connections that the server has, without the one that
// asks.
func (s *Server) Connections() int {
	s.t.Helper()
	n, err := strconv.Atoi(s.Info("clients")["connected_clients"])
	if err != nil {
		s.t.Fatalf("redistest: connected_clients: %v", err)
	}
	return n - 1
}
