package goredisstore

import (
	"testing"

	"example.com/forebay/forebaytest/redistest"
)

func open(t *testing.T, url string) *Store {
	t.Helper()
	store, err := Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func TestInspect(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	seen, err := open(t, s.URL()).Inspect(t.Context(), "forebay")
	if err != nil || seen.Server != "Redis 7.0.15" && s.Info("server")["redis_version"] == "7.0.15" || seen.Evicts != "noeviction" {
		t.Errorf("%+v, %v", seen, err)
	}
}
