package goredisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says where the servers are, for [Open].
type Config struct {
	// URL of the servers, as go-redis reads it. Required.
	//
	//	redis://HOST:PORT/DATABASE                            one server: redis.ParseURL
	//	rediss://USER:PASSWORD@HOST:PORT                      over TLS, by name
	//	unix:///PATH?db=DATABASE                              a socket
	//	redis://HOST:PORT?addr=HOST:PORT&addr=…               a Cluster: redis.ParseClusterURL
	//	redis://HOST:PORT?addr=…&master_name=NAME             Sentinels: redis.ParseFailoverURL
	//
	// The user in the URL of Sentinels is theirs; that of the servers is written
	// username=…&password=… behind it.
	URL string
	// Username and Password are the servers', and take the place of those in the URL,
	// if they are given.
	Username, Password string
	// TLS is how to call the servers, and the Sentinels, of a URL with rediss. Nil: the
	// authorities of the system are trusted. It is kept, and must not be changed.
	TLS *tls.Config
}

// Dial is [Open] with a URL alone.
func Dial(url string) (*Store, error) { return Open(Config{URL: url}) }

// Open returns a store with a client of its own. Nothing is sent before it is needed,
// so the servers may be away; an error says what is wrong with the configuration.
func Open(c Config) (*Store, error) {
	client, where, err := c.client()
	if err != nil {
		return nil, fmt.Errorf("goredisstore: %w", err)
	}
	return newStore(client, where, true), nil
}

// client makes a client of one of three kinds, each with options of a type of its own,
// and sets the same in each: nothing is sent twice, as what is lost is told; a dial is
// tried once, as the breaker decides about the next; deadlines of contexts hold for
// connections too; and nothing is sent for which a user would need one more right (CLIENT
// SETINFO, CLIENT MAINT_NOTIFICATIONS, COMMAND).
func (c *Config) client() (client redis.UniversalClient, where string, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, "", errors.New("the URL cannot be read; in a password, write %40 for @, %2F for / and so on")
	}
	switch q := u.Query(); {
	case q.Has("master_name"):
		return c.failover()
	case q.Has("addr"):
		return c.cluster()
	}
	o, err := redis.ParseURL(c.URL)
	if err != nil {
		return nil, "", err
	}
	if err := c.secure(&o.TLSConfig, &o.Dialer); err != nil {
		return nil, "", err
	}
	c.user(&o.Username, &o.Password)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	orDefault(&o.DialTimeout)
	return redis.NewClient(o), o.Addr, nil
}

func (c *Config) failover() (redis.UniversalClient, string, error) {
	o, err := redis.ParseFailoverURL(c.URL)
	if err != nil {
		return nil, "", err
	}
	if err := c.secure(&o.TLSConfig, &o.Dialer); err != nil {
		return nil, "", err
	}
	c.user(&o.Username, &o.Password)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
	orDefault(&o.DialTimeout)
	return redis.NewFailoverClient(o), o.MasterName + " of " + strings.Join(o.SentinelAddrs, ", "), nil
}

func (c *Config) cluster() (redis.UniversalClient, string, error) {
	o, err := redis.ParseClusterURL(c.URL)
	if err != nil {
		return nil, "", err
	}
	if err := c.secure(&o.TLSConfig, &o.Dialer); err != nil {
		return nil, "", err
	}
	c.user(&o.Username, &o.Password)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
	o.DisableRoutingPolicies = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	orDefault(&o.DialTimeout)
	return redis.NewClusterClient(o), strings.Join(o.Addrs, ", "), nil
}

// Times of a client of ours.
const (
	dialTimeout = time.Second     // for a connection, TLS and password included
	silence     = 5 * time.Second // before the kernel asks whether a quiet peer is there
)

func orDefault(timeout *time.Duration) {
	if *timeout == 0 {
		*timeout = dialTimeout
	}
}

func (c *Config) user(username, password *string) {
	if c.Username != "" || c.Password != "" {
		*username, *password = c.Username, c.Password
	}
}

// secure says how connections are made. With no name in the TLS configuration, each
// server is to have a certificate for the name that it is called by.
func (c *Config) secure(config **tls.Config, dial *func(context.Context, string, string) (net.Conn, error)) error {
	t := *config
	switch {
	case t == nil && c.TLS != nil:
		return errors.New("TLS is given for a URL without it; write rediss:// for redis://")
	case t != nil && c.TLS != nil:
		skip := t.InsecureSkipVerify
		t = c.TLS.Clone()
		t.InsecureSkipVerify = t.InsecureSkipVerify || skip
	case t != nil:
		t.ServerName = ""
	}
	*config = t
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: time.Second, Count: 3}}
	*dial = d.DialContext
	if t != nil {
		secure := &tls.Dialer{NetDialer: d, Config: t}
		*dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := secure.DialContext(ctx, network, address)
			if err != nil {
				return nil, fmt.Errorf("TLS with %s: %w", address, err)
			}
			return conn, nil
		}
	}
	return nil
}
