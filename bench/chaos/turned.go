//go:build linux

package main

import (
	"fmt"
	"time"
)

// turnable are edits after which a worker's gates and its cluster go by a clock that
// can be turned while they run: its wall clock can jump, and all of it can be fast or
// slow, as the variable clockVariable says.
var turnable = []edit{
	{"clock.go", "func clock() time.Time { return epoch.Add(time.Since(epoch)) }", "func clock() time.Time { return epoch.Add(turnedNow().Sub(epoch)) }\n" + turnedNow},
	{"clock.go", "	now := time.Now()\n", "	now := turnedNow()\n"},
	{"clock.go", "now.Add(time.Until(d))", "now.Add(d.Sub(turnedNow()))"},
	{"clock.go", "	\"math\"\n	\"time\"\n", turnedImports},
	{"cluster/clock.go", "import \"time\"\n", "import (\n" + turnedImports + ")\n"},
	{"cluster/clock.go", "func clock() time.Time { return time.Now() }", "func clock() time.Time { return turnedNow() }\n" + turnedNow},
}

const clockVariable = "CHAOS_CLOCK"

const turnedImports = "	\"fmt\"\n	\"math\"\n	\"os\"\n	\"time\"\n	\"unsafe\"\n"

// turnedNow is what time.Now is to the edited code. The seconds of the wall clock are
// at the 30th bit of a time that also has the monotonic one.
const turnedNow = `
var turnedFrom, _ = time.Now(), math.Pi

func turnedNow() time.Time {
	t := time.Now()
	text := os.Getenv("` + clockVariable + `")
	if text == "" {
		return t
	}
	var jump int64
	var rate float64
	var since int64
	fmt.Sscan(text, &jump, &rate, &since)
	begin := turnedFrom.Add(time.Duration(since))
	t = begin.Add(time.Duration(float64(t.Sub(begin)) * rate))
	*(*uint64)(unsafe.Pointer(&t)) += uint64(jump) << 30
	return t
}
`

// turnWorkers turns the clocks of some workers: a jump of the wall clock, and how fast
// it goes from then on.
func turnWorkers(jump time.Duration, rate float64, then func(*stage) error, workers ...int) func(*stage) error {
	return func(st *stage) error {
		for _, i := range workers {
			o := order{Do: doClock, Clock: fmt.Sprintf("%d %g", int64(jump.Seconds()), rate)}
			if err := st.members[i].tell(o); err != nil {
				return err
			}
		}
		return then(st)
	}
}

// watch looks on for a while.
func watch(long time.Duration) func(*stage) error {
	return func(*stage) error { time.Sleep(long); return nil }
}
