package redisledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
	reply, err := c.exchange(ctx, r)
	var odd *unreadable
	switch {
	case errors.As(err, &odd):
		return cluster.Reply{}, c.setup(odd.error, foreign(r.Key))
	case err != nil:
		c.asks.Store(askUnknown) // what answers next may be another server
		return cluster.Reply{}, c.fault(ctx, err)
	}
	c.subs.spoke(r.Key, reply.Epoch)
	return reply, nil
}

func (c *Core) exchange(ctx context.Context, r *cluster.Request) (reply cluster.Reply, err error) {
	asks := c.asks.Load()
	if asks == askUnknown {
		if asks, err = c.whoAsks(ctx, r.Key); err != nil {
			return reply, err
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
		reply, err = c.run(ctx, do, r.Key, r.Args(identity))
		return err
	})
	return reply, err
}

// run has the server execute the script, at most once. The server may not know it: it
// has been restarted, or told to forget, or is another one. Then nothing was executed,
// and the whole script is sent. And what is kept may be damaged: then it is lost,
// whatever was executed on it, and the script begins anew.
func (c *Core) run(ctx context.Context, do Do, key string, args []string) (cluster.Reply, error) {
	command := append([]string{"EVALSHA", c.sha, "1", key}, args...)
	reply, err := step(ctx, do, command)
	var refusal Refusal
	if errors.As(err, &refusal) && refusal.kind() == "NOSCRIPT" {
		c.reloads.Add(1)
		command[0], command[1] = "EVAL", c.source
		reply, err = step(ctx, do, command)
	}
	lost, unnoticed := damaged(err)
	if unnoticed {
		if _, err := do(ctx, forget(key)); err != nil {
			return cluster.Reply{}, err
		}
	}
	if lost {
		reply, err = step(ctx, do, command)
	}
	return reply, err
}

// step executes the script, and reads its answer.
func step(ctx context.Context, do Do, command []string) (cluster.Reply, error) {
	answer, err := do(ctx, command)
	if err != nil {
		return cluster.Reply{}, err
	}
	text, ok := answer.(string)
	if !ok {
		return cluster.Reply{}, fmt.Errorf("the script answers %T, not a string", answer)
	}
	reply, err := cluster.ParseReply(text)
	if err != nil {
		return cluster.Reply{}, &unreadable{err}
	}
	return reply, nil
}

// unreadable is an answer of the script that has something of what is kept in it, and
// that is not what it should be.
type unreadable struct{ error }

// spoilt is what the script says when it found in the middle of a step that it cannot
// read what is kept: it took no step, and took care that the next one begins anew.
const spoilt = "it counts as lost"

// stumbled is how an error begins that is the script's own, and not one of a command in
// it: what is kept is of another kind than it should be, a text where a number was. It
// took no step, and would stumble again, whoever asks.
var stumbled = regexp.MustCompile(`(^| )user_script:\d+: `)

// damaged reports whether what is kept is lost as it cannot be read, and whether the
// script has not noticed that.
func damaged(err error) (lost, unnoticed bool) {
	var refusal Refusal
	var odd *unreadable
	switch {
	case errors.As(err, &odd):
		return true, true
	case !errors.As(err, &refusal):
		return false, false
	case strings.Contains(string(refusal), spoilt):
		return true, false
	}
	lost = stumbled.MatchString(string(refusal))
	return lost, lost
}

// forget makes of what is kept something that the next step finds to be lost. It is
// there for longer than anybody may hold what was lent.
func forget(key string) []string { return []string{"SET", key, "spoilt", "PX", "604800000"} }

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
