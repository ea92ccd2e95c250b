// Package redistest starts real Redis servers for tests and measurements: one
// server, a primary with replicas and Sentinels, a Cluster; with TLS, with users of
// few rights, with a clock of their own. It stops them hard, freezes them, starts
// them again empty, and counts the commands that reach them.
//
//	s := redistest.Start(t, redistest.Config{})
//	store, err := redisstore.Dial(s.URL())
//	…
//	s.Kill()
//	s.Restart() // at the same address, empty
//
// Each server has a free port on the loopback interface and a directory of its own,
// and is stopped, by its process id, when the test ends. Servers that the machine
// runs are never touched. Where redis-server is not installed the test is skipped
// with a message that says what to install.
//
// The package requires the standard library only and speaks just enough of the
// protocol to ask servers about themselves. A [Server] is safe for concurrent use,
// but for what ends and begins its process.
package redistest
