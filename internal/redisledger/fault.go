package redisledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"example.com/forebay/cluster"
)

// fault is an error of a store: what was met, where, and what helps.
type fault struct {
	text  string
	setup bool
	cause error
}

func (f *fault) Error() string { return f.text }

func (f *fault) Unwrap() error { return f.cause }

// Is makes a fault that does not go away by itself a [cluster.ErrSetup].
func (f *fault) Is(target error) bool { return f.setup && target == cluster.ErrSetup }

// Setup is an error of a client library that will not go away by itself, and what
// helps.
type Setup struct {
	Err    error
	Remedy string
}

// Error returns the text of Err.
func (s *Setup) Error() string { return s.Err.Error() }

// Unwrap returns Err.
func (s *Setup) Unwrap() error { return s.Err }

// setup returns the error of a store that is reached and cannot work.
func (c *Core) setup(err error, remedy string) error {
	return &fault{text: c.text(err, remedy), setup: true, cause: err}
}

// away returns the error of a store that is not there at the moment.
func (c *Core) away(err error, remedy string) error {
	return &fault{text: c.text(err, remedy), cause: err}
}

func (c *Core) text(err error, remedy string) string {
	text := fmt.Sprintf("%s: %s: %s", c.name, c.client.Where(), strings.TrimSpace(err.Error()))
	if remedy != "" {
		text += "; " + remedy
	}
	return text
}

// states are answers of servers that cannot serve for the moment, by their first word.
var states = map[string]string{
	"LOADING":     "it reads its data; that takes a moment",
	"READONLY":    "it is a replica now; the client looks for the primary",
	"OOM":         "its memory is full; raise maxmemory, or give the ledgers a Redis of their own",
	"NOREPLICAS":  "too few replicas are in step (min-replicas-to-write); look at them",
	"MASTERDOWN":  "it is a replica without its primary; look at that",
	"CLUSTERDOWN": "its cluster is not whole; look at its nodes",
	"TRYAGAIN":    "a slot is on its way to another node",
	"MOVED":       "a slot has gone to another node",
	"ASK":         "a slot is on its way to another node",
	"BUSY":        "a script runs for too long; SCRIPT KILL ends it",
	"MISCONF":     "it cannot write its data to disk; look at its log",
	"NOSCRIPT":    "it forgot the script twice in one exchange",
	"UNBLOCKED":   "somebody ended the command",
}

// refusals are answers that stay what they are until somebody changes something, by
// their first words.
var refusals = []struct{ prefix, remedy string }{
	{"NOAUTH", "put user and password into the address"},
	{"WRONGPASS", "put the right user and password into the address"},
	{"invalid password", "put the right password into the address"},
	{"AUTH", "take the password out of the address"},
	{"Client sent AUTH", "take the password out of the address"},
	{"DENIED", "it is in protected mode; give it a password, or bind it to an address"},
	{"NOPROTO", "it does not speak the protocol that is asked for"},
	{"unknown command", "it is too old, or the command is renamed; Redis from 6.2 has it"},
	{"Unknown Redis command", "it is too old, or a command is renamed; Redis from 6.2 has them all"},
	{"DB index", "take another database number"},
	{"SELECT is not allowed", "a cluster has database 0 alone; take the number out of the address"},
	{"This instance has cluster support disabled", "name one server, not a cluster"},
	{"CROSSSLOT", "this is a bug of forebay's; please report it"},
	{"WRONGTYPE", "somebody else uses the key; give forebay another name"},
}

// fault returns what an error says about the store.
func (c *Core) fault(ctx context.Context, err error) error {
	var setup *Setup
	if errors.As(err, &setup) {
		return c.setup(setup, setup.Remedy)
	}
	var refusal Refusal
	if errors.As(err, &refusal) {
		return c.refused(refusal)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err // the caller's own doing
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return c.away(err, "it has not answered in the time that it was given")
	}
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var plain tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &host):
		return c.setup(err, "its certificate is not trusted here; give this program the authority that signed it")
	case errors.As(err, &plain):
		return c.setup(err, "it does not speak TLS there; take another port, or redis:// in place of rediss://")
	case errors.As(err, &alert):
		return c.setup(err, "it does not accept our side of TLS; it may want a certificate of its callers")
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return c.away(err, "it closed the connection")
	}
	return c.away(err, "")
}

// refused returns what an answer of the server says about the store. An answer that
// is not known is a mistake of ours, or of a server that is not Redis: it is not taken
// for a store that is away.
func (c *Core) refused(r Refusal) error {
	if remedy, ok := states[r.kind()]; ok {
		return c.away(r, remedy)
	}
	text := string(r)
	if strings.HasPrefix(text, "max number of clients") {
		return c.away(r, "it has too many connections; raise maxclients, or look who has them")
	}
	if right := c.missing(text); right != "" {
		return c.setup(r, "give the user the right "+right)
	}
	for _, known := range refusals {
		if strings.HasPrefix(text, known.prefix) {
			return c.setup(r, known.remedy)
		}
	}
	return c.setup(r, "this is a bug of forebay's, or the server is not Redis; please report it")
}
