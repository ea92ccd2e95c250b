package cluster

import (
	"context"
	"errors"
)

// Store keeps the ledgers, one for each gate, where every instance reaches them.
// Package contrib/redisstore is one on Redis; a [Ledger] behind a lock is one for
// a single process. A Store is safe for concurrent use. Conformance:
// forebaytest.TestStore.
type Store interface {
	// Exchange tells the ledger of one gate what r says, and returns its answer. It
	// is one atomic step of the ledger, which happens at most once: an Exchange is
	// never repeated by the store once it may have been executed. It ends when ctx
	// does, and then says nothing about whether the step was taken.
	//
	// An error that is an [ErrSetup] will not go away by itself: the store is reached
	// and refuses to work as it is set up. Any other says that the store is away.
	Exchange(ctx context.Context, r *Request) (Reply, error)

	// Subscribe hands on what ledgers publish on the channels, in order for each,
	// until ctx ends or the connection is lost, and returns why it ended. ready is
	// called once, when everything published from then on will be heard.
	Subscribe(ctx context.Context, channels []string, ready func(), heard func(Message)) error

	// Stats returns the ledger of one gate as it stands; an empty State if there is
	// none.
	Stats(ctx context.Context, key string) (State, error)
}

// Message is what a ledger published.
type Message struct{ Channel, Text string }

// ErrSetup is the kind of error of a [Store] that is reached and cannot work as it is
// set up: a missing right, a wrong password, a command that it does not know.
var ErrSetup = errors.New("cluster: the store is not set up for forebay")
