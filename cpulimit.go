package forebay

import "runtime"

// CPULimit returns perCPU calls for every CPU that this process may use, rounded down
// and at least 1: a [Config.MaxInFlight] to start from for work that is done here,
// rather than waited for. A container's CPU quota counts, as Go's runtime sees it: 1.5
// CPUs are 2. Work that mostly waits for something else is to be sized by that.
func CPULimit(perCPU float64) int {
	if !(perCPU > 0) {
		panic("forebay: CPULimit of nothing per CPU")
	}
	return int(min(max(1, float64(runtime.GOMAXPROCS(0))*perCPU), maxUnits))
}
