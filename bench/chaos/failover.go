//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// masterName is what Sentinel calls the server.
const masterName = "chaos"

// replicatedWorld is a server with a replica, watched by a Sentinel. The replica, the
// Sentinel and whoever asks the Sentinel reach the server by one wire, so that what
// goes to the replica can be held back. Workers that know nothing of Sentinels have
// links, which follow it.
func replicatedWorld(st *stage) error {
	if err := st.twoServers(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(st.wires[0].addr())
	if err != nil {
		return err
	}
	sentinel, err := st.watch(port)
	if err != nil {
		return err
	}
	if st.ours() {
		st.sheet.Redis = place{Addrs: []string{sentinel}, Master: masterName}
		return nil
	}
	return st.linkAll()
}

// twoServers starts a server and a replica of it, which reaches it by a wire.
func (st *stage) twoServers() error {
	master, err := newServer(filepath.Join(st.dir, "redis"))
	if err != nil {
		return err
	}
	st.servers = append(st.servers, master)
	wire, err := newLink(master.addr())
	if err != nil {
		return err
	}
	st.wires = append(st.wires, wire)
	replica, err := newServer(filepath.Join(st.dir, "replica"),
		"--replicaof", strings.Replace(wire.addr(), ":", " ", 1), "--repl-diskless-sync-delay", "0")
	if err != nil {
		return err
	}
	st.servers = append(st.servers, replica)
	return replica.follows()
}

// follows waits until a replica has all that its master has.
func (s *server) follows() error {
	return eventually("the replica follows", func() bool {
		info, err := ask(s.addr(), "INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// watch starts a Sentinel and waits until it knows the replica.
func (st *stage) watch(masterPort string) (addr string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	config := filepath.Join(st.dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nlogfile %s/sentinel.log\n"+
		"sentinel monitor %s 127.0.0.1 %s 1\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n",
		port, st.dir, st.dir, masterName, masterPort, masterName, masterName)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	p, err := startProcess("redis-server", config, "--sentinel")
	if err != nil {
		return "", err
	}
	st.others = append(st.others, p)
	addr = "127.0.0.1:" + strconv.Itoa(port)
	return addr, eventually("the Sentinel knows the replica", func() bool {
		known, err := ask(addr, "SENTINEL", "REPLICAS", masterName)
		return err == nil && strings.Contains(known, "master-link-status\nok")
	})
}

// failOver lets the replica fall behind, kills the server, and waits until the
// Sentinel has made the replica the server.
func failOver(behind time.Duration) func(*stage) error {
	return func(st *stage) error {
		st.wires[0].set(mood{deafen: true})
		time.Sleep(behind)
		st.struck = now()
		st.server().kill()
		st.servers[0], st.servers[1] = st.servers[1], st.servers[0]
		err := eventually("the replica is promoted", func() bool {
			role, err := ask(st.server().addr(), "ROLE")
			return err == nil && strings.HasPrefix(role, "master")
		})
		for _, l := range st.links {
			l.follow(st.server().addr())
		}
		return err
	}
}

// clusterWorld is a Redis Cluster of two servers, of which the first has every slot.
func clusterWorld(st *stage) error {
	var buses []string
	for i := range 2 {
		bus, err := freePort()
		if err != nil {
			return err
		}
		buses = append(buses, strconv.Itoa(bus))
		s, err := newServer(filepath.Join(st.dir, "redis"+strconv.Itoa(i)),
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", buses[i],
			"--cluster-allow-replica-migration", "no") // who gives its last slot away remains
		if err != nil {
			return err
		}
		st.servers = append(st.servers, s)
	}
	first, second := st.servers[0], st.servers[1]
	if err := first.do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil {
		return err
	}
	// An epoch of its own for each, which the usual tool gives them too: with equal ones
	// they would settle it among themselves while slots move.
	for i, s := range st.servers {
		if err := s.do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	if err := second.do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(first.port), buses[0]); err != nil {
		return err
	}
	st.sheet.Redis = place{Addrs: []string{first.addr(), second.addr()}, Whole: true}
	return eventually("the cluster is whole", func() bool {
		for _, s := range st.servers {
			info, err := ask(s.addr(), "CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:2") {
				return false
			}
		}
		return true
	})
}

// migrate moves the slot of our key to the other server, as the usual tool does, and
// back again.
func migrate(st *stage) error {
	keys, err := ask(st.servers[0].addr(), "KEYS", "*")
	if err != nil {
		return err
	}
	key := strings.Fields(keys)[0]
	slot, err := ask(st.servers[0].addr(), "CLUSTER", "KEYSLOT", key)
	if err != nil {
		return err
	}
	if err := move(st.servers[0], st.servers[1], key, slot); err != nil {
		return err
	}
	time.Sleep(8 * time.Second)
	return move(st.servers[1], st.servers[0], key, slot)
}

// move moves one slot.
func move(from, to *server, key, slot string) error {
	fromID, err := ask(from.addr(), "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	toID, err := ask(to.addr(), "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	for _, step := range []struct {
		at   *server
		args []string
	}{
		{to, []string{"CLUSTER", "SETSLOT", slot, "IMPORTING", fromID}},
		{from, []string{"CLUSTER", "SETSLOT", slot, "MIGRATING", toID}},
		{from, []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), key, "0", "5000"}},
		{to, []string{"CLUSTER", "SETSLOT", slot, "NODE", toID}},
		{from, []string{"CLUSTER", "SETSLOT", slot, "NODE", toID}},
	} {
		if err := step.at.do(step.args...); err != nil {
			return err
		}
	}
	return nil
}

// lateNews is a failover of which some hear late.
const lateNews = "a stale replica takes over, half of the workers hear of it 1.5 s late"

// standbyWorld is a server with a replica, and nobody who watches over them: links
// follow when the harness says so.
func standbyWorld(st *stage) error {
	if err := st.twoServers(); err != nil {
		return err
	}
	return st.linkAll()
}

// takeOver has the slots go from the first workers to the others, of which the replica
// hears nothing. It takes over, and only the first workers hear of that at once: they
// want all slots again, which the replica believes to be theirs.
func takeOver(st *stage) error {
	early, late := st.members[:2], st.members[2:]
	err := st.shift(early, late)
	st.wires[0].set(mood{deafen: true})
	err = errors.Join(err, st.shift(late, early))
	st.struck = now()
	st.server().kill()
	st.servers[0], st.servers[1] = st.servers[1], st.servers[0]
	err = errors.Join(err, st.server().do("REPLICAOF", "NO", "ONE"))
	for _, m := range early {
		st.links[m.Worker].follow(st.server().addr())
		err = errors.Join(err, m.tell(order{Do: doWork}))
	}
	time.Sleep(1500 * time.Millisecond)
	for _, m := range late {
		st.links[m.Worker].follow(st.server().addr())
	}
	return err
}

// shift has some rest and others work, until these have the slots.
func (st *stage) shift(to, from []*member) (err error) {
	for _, m := range from {
		err = errors.Join(err, m.tell(order{Do: doRest}))
	}
	for _, m := range to {
		err = errors.Join(err, m.tell(order{Do: doWork}))
	}
	time.Sleep(500 * time.Millisecond)
	return err
}
