package goredisstore

import (
	"net/url"
	"testing"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
	"example.com/forebay/forebaytest/redistest"
)

// config returns what opens a store on servers. A machine that is busy with other tests is
// given its time to connect.
func config(a redistest.Address) Config {
	u := url.URL{Scheme: "redis"}
	q := url.Values{"dial_timeout": {"3s"}}
	switch {
	case a.Socket != "":
		u.Scheme, u.Path = "unix", a.Socket
	default:
		u.Host = a.Servers[0]
		q["addr"] = a.Servers[1:]
	}
	if a.TLS != nil {
		u.Scheme = "rediss"
	}
	if a.SentinelPassword != "" {
		u.User = url.UserPassword("", a.SentinelPassword)
	}
	if a.Primary != "" {
		q.Set("master_name", a.Primary)
	}
	u.RawQuery = q.Encode()
	return Config{URL: u.String(), Username: a.User, Password: a.Password, TLS: a.TLS}
}

func open(a redistest.Address) (redistest.Store, error) { return Open(config(a)) }

func TestRedis(t *testing.T) {
	redistest.TestStore(t, redistest.Opener{
		Open:        open,
		Cluster:     []string{"+cluster|slots", "+asking"},
		Connections: 30,
	})
}

// TestConformance runs as a user with exactly the rights that are documented.
func TestConformance(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	a := s.Address()
	a.User, a.Password = "gates", "secret"
	forebaytest.TestStore(t, func(t testing.TB) cluster.Store {
		s.AddUser(a.User, a.Password, append(cluster.Rights("conformance"), "~conformance-*", "&conformance-*")...)
		store, err := Open(config(a))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	})
}
