package redistest

import "crypto/tls"

// Address says where servers are, for a client that is to be made.
type Address struct {
	// Servers are host and port of a server; of some nodes of a Cluster; or of the
	// Sentinels.
	Servers []string
	// Primary is what the Sentinels call the primary. Empty: there are none.
	Primary string
	// Cluster says that the servers are nodes of one.
	Cluster bool
	// Socket is the path of a unix socket, in place of Servers.
	Socket string
	// User and Password are the servers'.
	User, Password string
	// SentinelPassword is the Sentinels'.
	SentinelPassword string
	// TLS is how to call them. Nil: without.
	TLS *tls.Config
}

// Address returns where the server is, with the default user's password.
func (s *Server) Address() Address {
	return Address{Servers: []string{s.Addr()}, Password: s.config.Password, TLS: s.TLS()}
}

// Address returns where the Sentinels are.
func (r *Replicated) Address() Address {
	a := r.Servers[0].Address()
	a.Servers, a.Primary = r.SentinelAddrs(), r.Name
	a.SentinelPassword = r.Sentinels[0].config.Password
	return a
}

// Address returns where the nodes are.
func (k *Cluster) Address() Address {
	a := k.Nodes[0].Address()
	a.Servers, a.Cluster = k.Addrs(), true
	return a
}
