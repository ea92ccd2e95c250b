package goredisstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
	"example.com/forebay/forebaytest/redistest"
)

// TestOwnClient runs on clients that the caller made.
func TestOwnClient(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	for name, options := range map[string]redis.Options{
		"as go-redis makes it": {},
		"RESP2":                {Protocol: 2},
		"no time limit":        {ReadTimeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			options.Addr = s.Addr()
			client := redis.NewClient(&options)
			defer client.Close()
			forebaytest.TestStore(t, func(t testing.TB) cluster.Store {
				store := New(client)
				t.Cleanup(store.Close)
				return store
			})
			ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer stop()
			s.Freeze()
			_, err := New(client).Exchange(ctx, &cluster.Request{Key: cluster.KeyOf("forebay", "g"), Instance: "a"})
			s.Thaw()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrSetup) || !strings.Contains(err.Error(), s.Addr()) {
				t.Errorf("a frozen server: %v", err)
			}
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Errorf("the client of a store that was closed: %v", err)
			}
		})
	}
}

// lossy is a connection that ends in place of the answer to an EVALSHA.
type lossy struct {
	net.Conn
	on   *atomic.Bool
	lost bool
}

func (l *lossy) Write(b []byte) (int, error) {
	l.lost = l.on.Load() && bytes.Contains(bytes.ToUpper(b), []byte("EVALSHA"))
	return l.Conn.Write(b)
}

func (l *lossy) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if l.lost {
		return 0, io.EOF
	}
	return n, err
}

// TestRetries shows that an exchange is not made again by a client that is told to try
// again, on a server, and on a Cluster.
func TestRetries(t *testing.T) {
	var on atomic.Bool
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return &lossy{Conn: c, on: &on}, err
	}
	k := redistest.StartCluster(t, redistest.ClusterConfig{})
	s := redistest.Start(t, redistest.Config{})
	key := cluster.KeyOf("forebay", "g")
	for _, c := range []struct {
		client redis.UniversalClient
		server *redistest.Server
	}{
		{redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: dial, MaxRetries: 5}), s},
		{redis.NewClusterClient(&redis.ClusterOptions{Addrs: k.Addrs(), Dialer: dial, MaxRetries: 5}), k.Owner(key)},
	} {
		defer c.client.Close()
		store := New(c.client)
		on.Store(false)
		if _, err := store.Exchange(t.Context(), &cluster.Request{Key: key, Instance: "a"}); err != nil {
			t.Fatal(err)
		}
		on.Store(true)
		before := c.server.Counts()
		if _, err := store.Exchange(t.Context(), &cluster.Request{Key: key, Instance: "a"}); err == nil || errors.Is(err, cluster.ErrSetup) {
			t.Errorf("an exchange whose answer is lost: %v", err)
		}
		if sent := c.server.Counts().Since(before); sent["evalsha"].Calls != 1 {
			t.Errorf("the server executed %v, want one evalsha", sent)
		}
	}
}

func TestWrongConfig(t *testing.T) {
	s := redistest.Start(t, redistest.Config{TLS: true})
	for _, c := range []struct {
		config Config
		words  string
	}{
		{Config{}, "scheme"},
		{Config{URL: "127.0.0.1:6379"}, "cannot be read"},
		{Config{URL: "redis://:secret%@127.0.0.1"}, "%40"},
		{Config{URL: "http://127.0.0.1"}, "scheme"},
		{Config{URL: "redis://127.0.0.1/x"}, "database"},
		{Config{URL: "redis://127.0.0.1?master_nam=x"}, "master_nam"},
		{Config{URL: "redis://127.0.0.1:6379", TLS: s.TLS()}, "rediss://"},
	} {
		_, err := Open(c.config)
		if err == nil || !strings.Contains(err.Error(), c.words) || !strings.HasPrefix(err.Error(), "goredisstore: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", c.config.URL, err, c.words)
		}
	}
}

// TestDocumentedRights compares what doc.go lists with what is needed.
func TestDocumentedRights(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "ACL SETUSER gates on >PASSWORD ")
	list, _, _ = strings.Cut(list, "\n//\n")
	got := strings.Join(strings.Fields(strings.ReplaceAll(list, "//", " ")), " ")
	if want := strings.Join(cluster.Rights("forebay"), " "); got != want {
		t.Errorf("documented are\n%s\nand needed\n%s", got, want)
	}
}
