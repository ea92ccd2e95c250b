package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"example.com/forebay/cluster"
)

// Client is a client library, as a [Core] needs it. It is safe for concurrent use.
type Client interface {
	// Do sends one command to the server that has the key and returns its answer: a
	// string, an int64, nil, or a []any of them. What the server answers with an error
	// is a [Refusal]. A command that may have been executed is never sent again.
	Do(ctx context.Context, key string, command []string) (any, error)
	// Over calls f with a way to send commands one after the other over one and the
	// same connection to the server that has the key.
	Over(ctx context.Context, key string, f func(Do) error) error
	// Subscribe does what [cluster.Store] says.
	Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error
	// Where says which servers these are, for people.
	Where() string
}

// Do sends one command.
type Do func(ctx context.Context, command []string) (any, error)

// Refusal is an error that a server answered: what is on the wire after the minus,
// and after ERR, the word for everything that has none of its own.
type Refusal string

// Refused returns the refusal that a server's answer is.
func Refused(answer string) Refusal { return Refusal(strings.TrimPrefix(answer, "ERR ")) }

// Error returns the answer.
func (r Refusal) Error() string { return string(r) }

// kind returns the first word of the answer, NOSCRIPT for example.
func (r Refusal) kind() string {
	word, _, _ := strings.Cut(string(r), " ")
	return word
}

// Core is a store without its client library.
type Core struct {
	name   string // of the store's package, for errors
	client Client
	source string // of the script
	sha    string

	reloads atomic.Uint64
	asks    atomic.Int32 // one of the ways below

	subs subscriptions
}

// Ways in which the script learns what server it runs on.
const (
	askUnknown int32 = iota
	askScript        // it asks by itself
	askStore         // the store asks before, over the same connection
)

// New returns the core of the store that the named package is.
func New(name string, client Client) *Core {
	c := &Core{name: name, client: client}
	c.source, c.sha = cluster.Script()
	return c
}

// Exchange does what [cluster.Store] says.
func (c *Core) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	text, err := c.exchange(ctx, r)
	if err != nil {
		c.asks.Store(askUnknown) // what answers next may be another server
		return cluster.Reply{}, c.fault(ctx, err)
	}
	reply, err := cluster.ParseReply(text)
	if err != nil {
		return cluster.Reply{}, c.setup(err, foreign(r.Key))
	}
	c.subs.spoke(r.Key, reply.Epoch)
	return reply, nil
}

func (c *Core) exchange(ctx context.Context, r *cluster.Request) (text string, err error) {
	asks := c.asks.Load()
	if asks == askUnknown {
		if asks, err = c.whoAsks(ctx, r.Key); err != nil {
			return "", err
		}
	}
	if asks == askScript {
		return c.run(ctx, func(ctx context.Context, command []string) (any, error) {
			return c.client.Do(ctx, r.Key, command)
		}, r.Key, r.Args(""))
	}
	err = c.client.Over(ctx, r.Key, func(do Do) error {
		identity, err := identify(ctx, do)
		if err != nil {
			return err
		}
		text, err = c.run(ctx, do, r.Key, r.Args(identity))
		return err
	})
	return text, err
}

// spoilt is what the script says when it found in the middle of a step that it cannot
// read what is kept: it took no step, and took care that the next one begins anew.
const spoilt = "it counts as lost"

// run has the server execute the script, at most once. The server may not know it:
// it has been restarted, or told to forget, or is another one. Then, and only then,
// nothing was executed, and the whole script is sent.
func (c *Core) run(ctx context.Context, do Do, key string, args []string) (string, error) {
	command := append([]string{"EVALSHA", c.sha, "1", key}, args...)
	answer, err := do(ctx, command)
	var refusal Refusal
	if errors.As(err, &refusal) && refusal.kind() == "NOSCRIPT" {
		c.reloads.Add(1)
		command[0], command[1] = "EVAL", c.source
		answer, err = do(ctx, command)
	}
	if errors.As(err, &refusal) && strings.Contains(string(refusal), spoilt) {
		answer, err = do(ctx, command)
	}
	if err != nil {
		return "", err
	}
	text, ok := answer.(string)
	if !ok {
		return "", fmt.Errorf("the script answers %T, not a string", answer)
	}
	return text, nil
}

// whoAsks finds out whether scripts may ask the server who it is.
func (c *Core) whoAsks(ctx context.Context, key string) (int32, error) {
	const question = `local r = redis.pcall('INFO', 'server')
return type(r) == 'string' and 1 or 0`
	answer, err := c.client.Do(ctx, key, []string{"EVAL", question, "1", key})
	if err != nil {
		return askUnknown, err
	}
	asks := askStore
	if answer == int64(1) {
		asks = askScript
	}
	c.asks.Store(asks)
	return asks, nil
}

// identify returns the identity of the server at the other end, empty if it does not
// tell.
func identify(ctx context.Context, do Do) (string, error) {
	answer, err := do(ctx, []string{"INFO", "server"})
	var refusal Refusal
	if errors.As(err, &refusal) && states[refusal.kind()] == "" {
		return "", nil
	}
	text, _ := answer.(string)
	return field(text, "run_id"), err
}

// field returns one value of what INFO answers.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// Stats does what [cluster.Store] says.
func (c *Core) Stats(ctx context.Context, key string) (cluster.State, error) {
	answer, err := c.client.Do(ctx, key, []string{"HGETALL", key})
	if err != nil {
		return cluster.State{}, c.fault(ctx, err)
	}
	all, _ := answer.([]any)
	kept := map[string]string{}
	for i := 0; i+1 < len(all); i += 2 {
		name, _ := all[i].(string)
		kept[name], _ = all[i+1].(string)
	}
	state, err := cluster.ParseState(kept)
	if err != nil {
		return cluster.State{}, c.setup(err, foreign(key))
	}
	return state, nil
}

// foreign is the remedy where a key holds what this program does not know.
func foreign(key string) string {
	return "another version of forebay, or something else, uses the key " + key + "; give this cluster another name"
}

// Reloads returns how often a server did not know the script.
func (c *Core) Reloads() uint64 { return c.reloads.Load() }

// Subscribe does what [cluster.Store] says.
func (c *Core) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	err := c.subs.subscribe(ctx, c.client, channels, ready, heard)
	if err == nil {
		err = errors.New("the subscription ended")
	}
	return c.fault(ctx, err)
}

// Close ends subscriptions that nobody waits for any more.
func (c *Core) Close() { c.subs.close() }
