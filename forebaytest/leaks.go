package forebaytest

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// Eventually fails the test unless a condition that others bring about comes true
// while a test may wait. It is for tests outside bubbles.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := overdue(); !condition(); {
		if past(end) {
			t.Fatalf("this did not come: %s", what)
		}
		<-time.After(200 * time.Microsecond)
	}
}

// CheckLeaks fails the test if at its end there are more goroutines than now, or more
// open descriptors, where the system says how many there are. Call it first: it looks
// when all other clean-ups have run. Tests that run in parallel count for each other.
func CheckLeaks(t testing.TB) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	t.Cleanup(func() {
		end := overdue()
		for runtime.NumGoroutine() > goroutines || openDescriptors() > descriptors {
			if past(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before; %d descriptors, %d before\n%s", runtime.NumGoroutine(), goroutines,
					openDescriptors(), descriptors, stacks[:runtime.Stack(stacks, true)])
				return
			}
			<-time.After(time.Millisecond)
		}
	})
}

// openDescriptors returns how many this process has, 0 where the system does not say.
func openDescriptors() int {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return len(names)
}
