package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Config says where the servers are, for [Open].
type Config struct {
	// URL of the servers, as rueidis.ParseURL reads it. Required.
	//
	//	redis://HOST:PORT/DATABASE                            one server
	//	rediss://USER:PASSWORD@HOST:PORT                      over TLS, by name
	//	unix:///PATH?db=DATABASE                              a socket
	//	redis://HOST:PORT?addr=HOST:PORT&addr=…               a Cluster, by some of its nodes
	//	redis://HOST:PORT?addr=…&master_set=NAME              the primary that Sentinels name
	URL string
	// Username and Password take the place of those in the URL, if they are given.
	Username, Password string
	// SentinelUsername and SentinelPassword are for the Sentinels. Empty: they need
	// none.
	SentinelUsername, SentinelPassword string
	// TLS is how to call the servers, and the Sentinels, of a URL with rediss. Nil: the
	// authorities of the system are trusted. It is kept, and must not be changed.
	TLS *tls.Config
}

// Dial is [Open] with a URL alone.
func Dial(url string) (*Store, error) { return Open(Config{URL: url}) }

// Open returns a store with a client of its own. Nothing is sent before it is needed,
// so the servers may be away; an error says what is wrong with the configuration.
func Open(c Config) (*Store, error) {
	option, err := c.option()
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return newStore(&client{
		where: strings.Join(option.InitAddress, ", "),
		open:  func() (rueidis.Client, error) { return connect(option) },
	}), nil
}

// Times of a client of ours.
const (
	dialTimeout = time.Second // for a connection, TLS and password included
	// silence is for how long a server may owe an answer before its connection is given
	// up. Whoever waits for the answer has gone long before.
	silence = 5 * time.Second
	// topology is how often the Sentinels are asked for the primary, besides listening
	// to them: a client that missed their word would hold on to the old one for ever.
	topology = 5 * time.Second
)

// option returns what rueidis is to be made with.
func (c *Config) option() (rueidis.ClientOption, error) {
	if _, err := url.Parse(c.URL); err != nil { // it would show the password
		return rueidis.ClientOption{}, errors.New("the URL cannot be read; in a password, write %40 for @, %2F for / and so on")
	}
	o, err := rueidis.ParseURL(c.URL)
	if err != nil {
		return o, err
	}
	if c.Username != "" || c.Password != "" {
		o.Username, o.Password = c.Username, c.Password
	}
	switch {
	case o.TLSConfig != nil:
		o.TLSConfig = c.tls(o.TLSConfig)
	case c.TLS != nil:
		return o, fmt.Errorf("TLS is given for %s; write rediss:// for redis://", strings.Join(o.InitAddress, ", "))
	}
	unix := o.DialCtxFn != nil
	o.DialCtxFn = dialer(unix)
	if o.Dialer.Timeout == 0 {
		o.Dialer.Timeout = dialTimeout
	}
	// Without this rueidis sends a PING over each idle connection once a second. The
	// kernel's probes find a peer that is gone, and silence one that does not answer.
	o.Dialer.KeepAlive = -1
	o.Dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: silence, Interval: time.Second, Count: 3}
	if o.ConnWriteTimeout == 0 {
		o.ConnWriteTimeout = silence
	}
	o.Sentinel.Dialer, o.Sentinel.TLSConfig = o.Dialer, o.TLSConfig
	o.Sentinel.Username, o.Sentinel.Password = c.SentinelUsername, c.SentinelPassword
	o.Sentinel.TopologyRefreshInterval = topology
	o.ClusterOption.MaxMovedRedirections = 5
	o.DisableRetry = true // what is lost is told, and the breaker decides
	o.DisableCache = true
	o.ClientSetInfo = rueidis.DisableClientSetInfo
	if o.ClientName == "" {
		o.ClientName = "forebay"
	}
	o.PipelineMultiplex = -1 // one connection for all exchanges
	// 256 under way at once, one for each gate, whose requests are short.
	o.RingScaleEachConn, o.ReadBufferEachConn, o.WriteBufferEachConn = 8, 1<<15, 1<<15
	o.ForceSingleClient = unix
	return o, nil
}

// tls returns how to call a server; with no name in it, each is to have a certificate
// for the name that it is called by.
func (c *Config) tls(fromURL *tls.Config) *tls.Config {
	t := fromURL
	if c.TLS != nil {
		t = c.TLS.Clone()
		t.InsecureSkipVerify = t.InsecureSkipVerify || fromURL.InsecureSkipVerify
	} else {
		t.ServerName = ""
	}
	return t
}

// connect makes a client, which speaks to the servers first.
func connect(o rueidis.ClientOption) (rueidis.Client, error) {
	o.InitAddress = slices.Clone(o.InitAddress)
	return rueidis.NewClient(o)
}

// dialer returns how connections are made: with somebody who watches them.
func dialer(unix bool) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	network := "tcp"
	if unix {
		network = "unix"
	}
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, stop := context.WithTimeout(ctx, d.Timeout) // for TLS too
		defer stop()
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn = watch(conn)
		if config == nil || unix {
			return conn, nil
		}
		if config.ServerName == "" && !config.InsecureSkipVerify {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				host = address
			}
			config = config.Clone()
			config.ServerName = host
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("TLS with %s: %w", address, err)
		}
		return secure, nil
	}
}
