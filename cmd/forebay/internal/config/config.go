package config

import (
	"crypto/tls"
	"net/netip"
	"net/url"
	"time"

	"example.com/forebay"
)

// Config is one whole configuration, checked, with defaults filled in.
type Config struct {
	Path           string         // of the file; empty when made from flags
	Hash           string         // of the file's bytes, twelve hexadecimal digits; empty when made from flags
	Listen         Listen         // where requests come in
	TLS            *TLS           // of Listen; nil: requests come in the clear
	Connections    Connections    // to Listen
	Admin          Admin          // where the program is operated
	Upstream       *url.URL       // http, https, or unix with the socket in Path
	Transport      string         // what speaks HTTP/1.1 to Upstream: "lean" or "standard"
	Server         string         // what speaks HTTP/1.1 to clients: "lean" or "standard"
	DrainTimeout   time.Duration  // for what runs when the program is to stop
	Timeouts       Timeouts       // of the proxy
	FrontTimeout   time.Duration  // how long what stands in front waits; 0: not known
	Pools          map[string]int // sizes by name
	TrustedProxies []netip.Prefix // whose headers are believed; single addresses have all bits
	ProxyProtocol  bool           // their connections begin with a PROXY header
	Caller         Caller         // how callers are told apart
	Deadline       Deadline       // how callers say how long they wait
	Retries        Retries        // how requests say that they come again
	RequestID      RequestID      // how requests are called
	Log            Log            // what is written down
	Intake         Intake         // what is taken in for requests that do not run
	Spool          Spool          // what is taken in of answers
	Gates          []Gate         // in the order of the file
	Lanes          []forebay.Lane // each at the gates that its routes pass; in the order of the file
	Cluster        *Cluster       // nil: this program shares nothing
	Routes         []Route        // in the order of the file

	at map[string]Pos
}

// Pos is a place in the file, counted from 1, columns in characters. The zero
// value is the place of what the file does not say.
type Pos struct {
	Line int `json:"line"`
	Col  int `json:"col"`
}

// At returns where the value of a key stands, the key written as in docs/config.md
// with names and places filled in: "front_timeout", "gates.reports.max_wait",
// "routes[2].match". It is the zero Pos for a default.
func (c *Config) At(key string) Pos { return c.at[key] }

// Listen is where requests come in.
type Listen struct {
	Address string // "127.0.0.1:8080", ":8080" or "unix:/path"
}

// Admin is the listener for those who operate the program.
type Admin struct {
	Address   string // as that of Listen
	TokenFile string // as written; empty: none
	Token     string // what the file holds, read when the configuration was
}

// Timeouts are those of the proxy itself.
type Timeouts struct {
	ReadHeader       time.Duration // for a request's header to come in
	Idle             time.Duration // for the next request on a connection
	Write            time.Duration // for a client to take in something of what it is sent
	UpstreamResponse time.Duration // for the upstream's header to come back
	StillRunning     time.Duration // for work whose client was told that it took too long; 0: none
}

// TLS is how requests come in encrypted.
type TLS struct {
	CertFile, KeyFile string // as written

	dir string // against which relative paths are meant
}

// Files returns the paths of certificate and key.
func (t *TLS) Files() (cert, key string) { return within(t.dir, t.CertFile), within(t.dir, t.KeyFile) }

// Load reads the certificate and its key.
func (t *TLS) Load() (tls.Certificate, error) { return tls.LoadX509KeyPair(t.Files()) }

// Connections bounds those of clients.
type Connections struct {
	Max        int // 0: as many as there are descriptors for
	PerAddress int // 0: no bound
}

// Caller says how callers are told apart.
type Caller struct {
	Header     string // where trusted proxies say whom they ask for: X-Forwarded-For or Forwarded
	IPv6Prefix int    // bits of an IPv6 address that are one caller's
}

// Deadline says how callers say how long they wait. Calls of gRPC do so in any case.
type Deadline struct {
	Header string // in canonical form; empty: none
}

// Retries says how requests say that they come again; empty: they do not.
type Retries struct {
	AttemptHeader string // how often it was tried before; in canonical form
	KeyHeader     string // what all attempts at one thing have in common; in canonical form
}

// RequestID says how requests are called.
type RequestID struct {
	Header string // in canonical form
	Trust  Trust
}

// Trust says whose word is taken.
type Trust string

// The words for [RequestID.Trust].
const (
	TrustProxies   Trust = "trusted_proxies" // the peers in [Config.TrustedProxies]
	TrustEverybody Trust = "everybody"       // whoever asks
	TrustNobody    Trust = "nobody"          // every request gets a new one
)

// Log says what is written down, and where.
type Log struct {
	To        string // "stderr", "syslog", or the absolute path of a file
	Decisions string // "refused", "all" or "off"
	RemoteIP  string // "truncated", "full", "hashed" or "off"
	MaxSize   int64  // bytes of one file before the next is begun; 0 unless To is a file
	Keep      int    // finished files that are kept; 0 unless To is a file
}

// Intake is how much is taken in for requests that do not run; see
// [forebay.IntakeConfig].
type Intake struct {
	MaxBytes     int64 // held in memory
	ReadAhead    int64 // of one body
	Discard      int64 // of one refused request
	DiscardTime  time.Duration
	DiscardTotal int64 // at one time
}

// Gate is one gate: what the library takes, and what only the program knows.
type Gate struct {
	forebay.Config        // MaxInFlight is 1, and what lanes have reserved, when Closed
	Closed         bool   // max_in_flight: closed
	Pool           string // what its calls use up; empty: not said
	StreamsGate    string // where streams take a slot instead; empty: as Streams says, whose Gate is nil here
	RefusalFile    string // that Refusal.Body comes from; empty: a built-in one
	Auto           *Auto  // the limit finds itself, from MaxInFlight on; nil: it stays
	law            law    // it does so after a published law, in scenarios; nil: it does not
	Terms          *Terms // of its loan from the cluster; nil: the limit is this program's own
	Pos            Pos    // of its name
}

// Route says which requests pass which gates.
type Route struct {
	Match  string
	Gates  []string // in the order in which they are passed
	Cost   int      // units of each of Gates that a request takes; 0: one
	Lane   string   // of the requests at each of Gates; empty: none
	Exempt bool     // passes without a slot
	Answer string   // "health": the program answers itself; else empty
	Pos    Pos      // of its pattern
}

// Gate returns the gate of that name, nil if there is none.
func (c *Config) Gate(name string) *Gate {
	for i := range c.Gates {
		if c.Gates[i].Name == name {
			return &c.Gates[i]
		}
	}
	return nil
}
