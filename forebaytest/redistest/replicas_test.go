package redistest

import "testing"

func TestFailover(t *testing.T) {
	r := StartReplicated(t, ReplicatedConfig{})
	first := r.Primary()
	if first != r.Servers[0] {
		t.Fatalf("the primary is %s, want the first server", first.Addr())
	}
	if now := r.Failover(); now != r.Servers[1] {
		t.Errorf("after the failover %s is it, want %s", now.Addr(), r.Servers[1].Addr())
	}
}

// TestStaleFailover lets a replica become the primary that has missed a write.
func TestStaleFailover(t *testing.T) {
	r := StartReplicated(t, ReplicatedConfig{Sentinels: 3})
	primary, replica := r.Servers[0], r.Servers[1]
	primary.Must("SET", "early", "1")
	until(t, "the write at the replica", func() bool { return replica.Must("GET", "early") == "1" })
	r.Detach(replica)
	primary.Must("SET", "late", "1")
	primary.Kill()
	if now := r.AwaitFailover(primary); now != replica {
		t.Fatalf("the primary is %s, want %s", now.Addr(), replica.Addr())
	}
	if got := replica.Must("GET", "early"); got != "1" {
		t.Errorf("early = %v, want 1", got)
	}
	if got := replica.Must("GET", "late"); got != nil {
		t.Errorf("late = %v, want nothing", got)
	}
}
