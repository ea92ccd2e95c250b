package redisstore

import (
	"testing"

	"github.com/redis/rueidis"

	"example.com/forebay/forebaytest/redistest"
)

func TestClient(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := New(client)
	if err := store.client.Do(t.Context(), store.client.B().Ping().Build()).Error(); err != nil {
		t.Error(err)
	}
}
