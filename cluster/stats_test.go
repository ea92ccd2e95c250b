package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/forebaytest"
)

// TestSeenWhileAway: an instance that tries to speak, and is not heard, is not seen.
func TestSeenWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		in := r.join()
		in.work(1, time.Millisecond, time.Millisecond)
		time.Sleep(time.Second)
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(10 * time.Second)
		st, _ := in.gate.ClusterStats()
		if me := st.Instances[0]; !me.Self || me.SeenMS < 10_000 || me.SeenMS > 11_000 || me.LeaseMS != 0 {
			t.Errorf("10 s after the store was lost: %+v", me)
		}
	})
}
