package redisstore

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
	"example.com/forebay/forebaytest/redistest"
)

// TestOwnClient runs on clients that the caller made.
func TestOwnClient(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	for name, option := range map[string]rueidis.ClientOption{
		"as rueidis makes it": {},
		"RESP2":               {AlwaysRESP2: true, DisableCache: true},
		"no pipelining":       {DisableAutoPipelining: true, DisableRetry: true},
	} {
		t.Run(name, func(t *testing.T) {
			option.InitAddress = []string{s.Addr()}
			client, err := rueidis.NewClient(option)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			forebaytest.TestStore(t, func(t testing.TB) cluster.Store {
				store := New(client)
				t.Cleanup(store.Close)
				return store
			})
			ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer stop()
			s.Freeze()
			_, err = New(client).Exchange(ctx, &cluster.Request{Key: cluster.KeyOf("forebay", "g"), Instance: "a"})
			s.Thaw()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrSetup) || !strings.Contains(err.Error(), s.Addr()) {
				t.Errorf("a frozen server: %v", err)
			}
			if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
				t.Errorf("the client of a store that was closed: %v", err)
			}
		})
	}
}

// TestMisnamedCluster is about a node of a Cluster that is taken for a server of its
// own, for want of the right to ask.
func TestMisnamedCluster(t *testing.T) {
	k := redistest.StartCluster(t, redistest.ClusterConfig{})
	key := cluster.KeyOf("forebay", "g")
	other := k.Nodes[0]
	if other == k.Owner(key) {
		other = k.Nodes[1]
	}
	other.AddUser("gates", "secret", cluster.Rights("forebay")...)
	a := other.Address()
	a.User, a.Password = "gates", "secret"
	store, err := Open(config(a))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, err = store.Exchange(t.Context(), &cluster.Request{Key: key, Instance: "a"})
	if !errors.Is(err, cluster.ErrSetup) || !strings.Contains(err.Error(), "+cluster|slots") {
		t.Errorf("%v, want what is missing", err)
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
		{Config{URL: "redis://127.0.0.1:6379", TLS: s.TLS()}, "rediss://"},
	} {
		_, err := Open(c.config)
		if err == nil || !strings.Contains(err.Error(), c.words) || !strings.HasPrefix(err.Error(), "redisstore: ") || strings.Contains(err.Error(), "secret") {
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

// TestOptions keeps what no server shows at once: that a missed word of a Sentinel is
// made up for, and that nothing is sent twice.
func TestOptions(t *testing.T) {
	o, err := (&Config{URL: "rediss://127.0.0.1?master_set=gates&write_timeout=3s"}).option()
	if err != nil {
		t.Fatal(err)
	}
	if o.Sentinel.TopologyRefreshInterval != topology || !o.DisableRetry || o.ConnWriteTimeout != 3*time.Second || o.ConnLifetime != 0 {
		t.Errorf("the options are %+v", o)
	}
}
