package goredisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/forebay/forebaytest/redistest"
)

func TestClient(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	if err := New(client).client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}
