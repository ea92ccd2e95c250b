package redistest

import (
	"fmt"
	"strconv"
	"strings"
)

// slots is how many slots a Cluster has.
const slots = 16384

// ClusterConfig says how a Cluster is.
type ClusterConfig struct {
	// Config of each node.
	Config
	// Nodes, each a primary without replicas. 0: three.
	Nodes int
}

// Cluster is a Redis Cluster whose slots are spread evenly over its nodes.
type Cluster struct {
	Nodes []*Server

	t   T
	bus []string // ports on which the nodes speak to each other
}

// StartCluster starts the nodes, and returns when each takes the cluster for whole.
func StartCluster(t T, c ClusterConfig) *Cluster {
	t.Helper()
	if c.Nodes == 0 {
		c.Nodes = 3
	}
	k := &Cluster{t: t}
	certs := c.certificates(t)
	for range c.Nodes {
		bus := freePort(t)
		k.bus = append(k.bus, strconv.Itoa(bus))
		k.Nodes = append(k.Nodes, startWith(t, c.Config, newDir(t), certs, "cluster-enabled yes",
			"cluster-config-file nodes.conf", "cluster-node-timeout 3000", fmt.Sprintf("cluster-port %d", bus)))
	}
	for i, n := range k.Nodes {
		n.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		n.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/c.Nodes), strconv.Itoa((i+1)*slots/c.Nodes-1))
		if i > 0 {
			n.Must("CLUSTER", "MEET", host, strconv.Itoa(k.Nodes[0].port), k.bus[0])
		}
	}
	for _, n := range k.Nodes {
		until(t, "a cluster that is whole", func() bool {
			info, _ := n.Must("CLUSTER", "INFO").(string)
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", c.Nodes))
		})
	}
	return k
}

// Addrs returns the addresses of the nodes.
func (k *Cluster) Addrs() (addrs []string) {
	for _, n := range k.Nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// URL returns the address of the Cluster in the form that names its nodes.
func (k *Cluster) URL() string {
	url := k.Nodes[0].URL()
	for i, addr := range k.Addrs()[1:] {
		url += "?&"[min(i, 1):min(i, 1)+1] + "addr=" + addr
	}
	return url
}

// Slot returns the slot of a key.
func (k *Cluster) Slot(key string) int {
	k.t.Helper()
	n, _ := k.Nodes[0].Must("CLUSTER", "KEYSLOT", key).(int64)
	return int(n)
}

// Owner returns the node that has the slot of a key.
func (k *Cluster) Owner(key string) *Server {
	k.t.Helper()
	slot := int64(k.Slot(key))
	answer, _ := k.Nodes[0].Must("CLUSTER", "SLOTS").([]any)
	for _, r := range answer {
		r, _ := r.([]any)
		if len(r) < 3 || slot < r[0].(int64) || slot > r[1].(int64) {
			continue
		}
		at, _ := r[2].([]any)
		for _, n := range k.Nodes {
			if len(at) > 1 && at[1] == int64(n.port) {
				return n
			}
		}
	}
	k.t.Fatalf("redistest: nobody has slot %d of %q", slot, key)
	return nil
}

// Move moves the slot of a key to another node. midway, if it is not nil, is called
// when the keys have moved and the slot is still the old node's, which answers ASK.
func (k *Cluster) Move(key string, to *Server, midway func()) {
	k.t.Helper()
	from, slot := k.Owner(key), strconv.Itoa(k.Slot(key))
	if from == to {
		k.t.Fatalf("redistest: Move of slot %s to the node that has it", slot)
	}
	to.Must("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id())
	from.Must("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id())
	for {
		keys, _ := from.Must("CLUSTER", "GETKEYSINSLOT", slot, "100").([]any)
		if len(keys) == 0 {
			break
		}
		from.migrate(to, keys)
	}
	if midway != nil {
		midway()
	}
	to.Must("CLUSTER", "SETSLOT", slot, "NODE", to.id())
	for _, n := range k.Nodes {
		if n != to {
			n.Must("CLUSTER", "SETSLOT", slot, "NODE", to.id())
		}
	}
}

// id returns the name of a node.
func (s *Server) id() string {
	s.t.Helper()
	return s.Must("CLUSTER", "MYID").(string)
}

// migrate hands keys over to another node.
func (s *Server) migrate(to *Server, keys []any) {
	s.t.Helper()
	args := []string{"MIGRATE", host, strconv.Itoa(to.port), "", "0", "5000"}
	if p := s.config.Password; p != "" {
		args = append(args, "AUTH", p)
	}
	args = append(args, "KEYS")
	for _, key := range keys {
		args = append(args, key.(string))
	}
	s.Must(args...)
}
