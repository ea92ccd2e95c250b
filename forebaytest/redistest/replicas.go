package redistest

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// ReplicatedConfig says how a primary with replicas is.
type ReplicatedConfig struct {
	// Config of each server.
	Config
	// Replicas beside the primary. 0: one.
	Replicas int
	// Sentinels that watch. 0: one. Negative: none, so that nobody is promoted.
	Sentinels int
	// SentinelPassword is what the Sentinels want. Empty: nothing.
	SentinelPassword string
}

// Replicated is a primary with replicas, watched by Sentinels.
type Replicated struct {
	// Name of the primary, as the Sentinels know it.
	Name string
	// Servers, of which the first is the primary at the start.
	Servers []*Server
	// Sentinels that watch.
	Sentinels []*Server

	t T
}

// StartReplicated starts a primary with replicas and Sentinels, and returns when
// they know each other and every replica is in step.
func StartReplicated(t T, c ReplicatedConfig) *Replicated {
	t.Helper()
	r := &Replicated{Name: "gates", t: t}
	certs := c.certificates(t)
	primary := startWith(t, c.Config, newDir(t), certs)
	r.Servers = append(r.Servers, primary)
	for range max(c.Replicas, 1) {
		r.Servers = append(r.Servers, startWith(t, c.Config, newDir(t), certs,
			fmt.Sprintf("replicaof %s %d", host, primary.port)))
	}
	for _, s := range r.Servers[1:] {
		until(t, "a replica in step", func() bool { return s.Info("replication")["master_link_status"] == "up" })
	}
	sentinels := max(c.Sentinels, 0)
	if c.Sentinels == 0 {
		sentinels = 1
	}
	for range sentinels {
		r.Sentinels = append(r.Sentinels, r.startSentinel(c, sentinels/2+1, certs))
	}
	for _, s := range r.Sentinels {
		until(t, "a Sentinel that knows everybody", func() bool { return r.knowsAll(s) })
	}
	return r
}

// startSentinel starts one that watches the primary.
func (r *Replicated) startSentinel(c ReplicatedConfig, quorum int, certs *certificates) *Server {
	r.t.Helper()
	primary := r.Servers[0]
	s := &Server{
		t: r.t, dir: newDir(r.t), certs: certs, config: Config{Password: c.SentinelPassword},
		program: need(r.t, "redis-sentinel"), args: []string{"redis.conf", "--sentinel"},
	}
	s.startOnFreePort(func() string {
		lines := []string{
			"bind " + host, "dir " + s.dir, "daemonize no",
			fmt.Sprintf("sentinel monitor %s %s %d %d", r.Name, host, primary.port, quorum),
			"sentinel down-after-milliseconds " + r.Name + " 500",
			"sentinel failover-timeout " + r.Name + " 5000",
		}
		if p := primary.config.Password; p != "" {
			lines = append(lines, "sentinel auth-pass "+r.Name+" "+p)
		}
		if p := c.SentinelPassword; p != "" { // theirs to each other, too
			lines = append(lines, "requirepass "+p)
		}
		return strings.Join(append(lines, s.listening()...), "\n") + "\n"
	})
	return s
}

// knowsAll reports whether a Sentinel has heard of every other, and from every
// replica that it is in step.
func (r *Replicated) knowsAll(sentinel *Server) bool {
	r.t.Helper()
	replicas, _ := sentinel.Must("SENTINEL", "REPLICAS", r.Name).([]any)
	inStep := 0
	for _, replica := range replicas {
		if fields(replica)["master-link-status"] == "ok" {
			inStep++
		}
	}
	primary := fields(sentinel.Must("SENTINEL", "MASTER", r.Name))
	return inStep == len(r.Servers)-1 && primary["num-other-sentinels"] == strconv.Itoa(len(r.Sentinels)-1)
}

// fields returns an answer of names and values in turn by name.
func fields(answer any) map[string]string {
	all, _ := answer.([]any)
	f := map[string]string{}
	for i := 0; i+1 < len(all); i += 2 {
		f[fmt.Sprint(all[i])] = fmt.Sprint(all[i+1])
	}
	return f
}

// SentinelAddrs returns the addresses of the Sentinels.
func (r *Replicated) SentinelAddrs() (addrs []string) {
	for _, s := range r.Sentinels {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Primary returns the server that the first Sentinel takes for the primary.
func (r *Replicated) Primary() *Server {
	r.t.Helper()
	answer, _ := r.Sentinels[0].Must("SENTINEL", "GET-MASTER-ADDR-BY-NAME", r.Name).([]any)
	for _, s := range r.Servers {
		if len(answer) == 2 && net.JoinHostPort(fmt.Sprint(answer[0]), fmt.Sprint(answer[1])) == s.Addr() {
			return s
		}
	}
	r.t.Fatalf("redistest: the Sentinel names %v, none of ours", answer)
	return nil
}

// AwaitFailover returns when the Sentinels have made another server than old the
// primary, and that takes writes.
func (r *Replicated) AwaitFailover(old *Server) *Server {
	r.t.Helper()
	var now *Server
	until(r.t, "another primary", func() bool {
		now = r.Primary()
		return now != old && now.Info("replication")["role"] == "master"
	})
	return now
}

// Failover has the Sentinels make a replica the primary while all is well, and
// returns it.
func (r *Replicated) Failover() *Server {
	r.t.Helper()
	old := r.Primary()
	r.Sentinels[0].Must("SENTINEL", "FAILOVER", r.Name)
	return r.AwaitFailover(old)
}

// Detach cuts a replica off from its primary: it stays a replica, with what it has
// got so far. The Sentinels mend that after some seconds.
func (r *Replicated) Detach(replica *Server) {
	r.t.Helper()
	replica.Must("REPLICAOF", host, strconv.Itoa(freePort(r.t)))
}

// SentinelURL returns the address of the primary in the form that names the
// Sentinels: scheme and user of a server, then all Sentinels, then the name.
func (r *Replicated) SentinelURL() string {
	first := r.Sentinels[0]
	url := r.Servers[0].URL()
	url = strings.Replace(url, r.Servers[0].Addr(), first.Addr(), 1) + "/0?master_set=" + r.Name
	for _, s := range r.Sentinels[1:] {
		url += "&addr=" + s.Addr()
	}
	return url
}

// Dir returns the directory of a server's files.
func (s *Server) Dir() string { return filepath.Clean(s.dir) }
