package server

import "github.com/prometheus/procfs"

// cpuTime returns how many seconds the processors of this host have worked so far, and
// how many have passed; ok is false if it is not told. In a container it is the host's
// too.
func cpuTime() (worked, passed float64, ok bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, false
	}
	st, err := fs.Stat()
	if err != nil {
		return 0, 0, false
	}
	t := st.CPUTotal
	worked = t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
	return worked, worked + t.Idle + t.Iowait, true
}
