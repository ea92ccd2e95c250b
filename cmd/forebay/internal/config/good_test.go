package config

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
)

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("good.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is the least that a file can say.
const small = `upstream: http://127.0.0.1:8000
gates: {a: {max_in_flight: 4}}
routes: [{match: /, gate: a}]
`

// contract is the example in which the format was agreed upon.
const contract = `listen: 127.0.0.1:8080
admin: 127.0.0.1:8081            # its own listener, never gated
upstream: http://127.0.0.1:8000
drain_timeout: 30s
timeouts: {read_header: 5s, idle: 75s, upstream_response: 30s}
front_timeout: 60s               # optional
pools: {db: 20}                  # optional
gates:
  reports: {max_in_flight: 4, max_wait: 100ms, max_waiting: 8, pool: db}
  orders:  {max_in_flight: 12, max_wait: 50ms, pool: db}
  ops:     {max_in_flight: 2}
routes:
  - {match: /health, exempt: true}
  - {match: GET /reports/, gate: reports}
  - {match: GET /export/, gates: [orders, reports]}   # a chain, in this order
  - {match: /admin/, gate: ops}
  - {match: /, gate: orders}
`

func TestTheContractsExample(t *testing.T) {
	c := mustParse(t, contract)
	if got, want := c.Upstream.String(), "http://127.0.0.1:8000"; got != want {
		t.Errorf("Upstream = %s, want %s", got, want)
	}
	if want := (Timeouts{5 * time.Second, 75 * time.Second, DefaultWrite, 30 * time.Second, 5 * time.Minute}); c.Timeouts != want {
		t.Errorf("Timeouts = %v, want %v", c.Timeouts, want)
	}
	if c.DrainTimeout != 30*time.Second || c.FrontTimeout != 60*time.Second || c.Pools["db"] != 20 {
		t.Errorf("DrainTimeout, FrontTimeout, db = %v, %v, %d", c.DrainTimeout, c.FrontTimeout, c.Pools["db"])
	}
	gates := []Gate{
		{Config: forebay.Config{Name: "reports", MaxInFlight: 4, MaxWait: 100 * time.Millisecond, MaxWaiting: 8, Track: true}, Pool: "db", Pos: Pos{9, 3}},
		{Config: forebay.Config{Name: "orders", MaxInFlight: 12, MaxWait: 50 * time.Millisecond, Track: true}, Pool: "db", Pos: Pos{10, 3}},
		{Config: forebay.Config{Name: "ops", MaxInFlight: 2, Track: true}, Pos: Pos{11, 3}},
	}
	if !reflect.DeepEqual(c.Gates, gates) {
		t.Errorf("Gates = %+v, want %+v", c.Gates, gates)
	}
	routes := []Route{
		{Match: "/health", Exempt: true, Pos: Pos{13, 13}},
		{Match: "GET /reports/", Gates: []string{"reports"}, Pos: Pos{14, 13}},
		{Match: "GET /export/", Gates: []string{"orders", "reports"}, Pos: Pos{15, 13}},
		{Match: "/admin/", Gates: []string{"ops"}, Pos: Pos{16, 13}},
		{Match: "/", Gates: []string{"orders"}, Pos: Pos{17, 13}},
	}
	if !reflect.DeepEqual(c.Routes, routes) {
		t.Errorf("Routes = %+v, want %+v", c.Routes, routes)
	}
	if got, want := c.At("gates.reports.max_wait"), (Pos{9, 41}); got != want {
		t.Errorf("max_wait stands at %v, want %v", got, want)
	}
}

// full has every key, in block style, with the values that are not the defaults.
const full = `listen: unix:/run/forebay/web.sock
admin:
  listen: 0.0.0.0:9001
  token_file: testdata/admin.token
upstream: unix:/run/gunicorn.sock
drain_timeout: 0
timeouts:
  read_header: 2500ms
  idle: 1m30s
  upstream_response: 1h
  still_running: 0
front_timeout: 2h
transport: standard
pools:
  db: 20
  "5": 4
trusted_proxies:
  - 10.0.0.0/8
  - 127.0.0.1
  - 2001:db8::/32
  - "::1"
request_id:
  header: x-correlation-id
  trust: everybody
log:
  to: /var/log/forebay.log
  decisions: off
  remote_ip: hashed
  max_size: 1GiB
  keep: 3
gates:
  reports:
    max_in_flight: 1
    max_wait: 1.5s
    max_waiting: 1
    pool: "5"
    hold: first_byte
    acquire: {body: 256KiB}
    upload: {min_rate: 2KiB, grace: 10s, max_time: 1m}
    streams: {slot: fixed-streams, max_life: 1h, max_idle: 5m}
    refuse:
      status: 429
      retry_after: {min: 2s, max: 1m}
      body: {file: testdata/busy.json, type: application/vnd.shop+json}
      headers: {X-Served-By: forebay, x-queue: "orders, please"}
      hide: [reason, gate]
      cors: {origins: ["https://shop.example", "http://localhost:3000"], credentials: true}
  shut: {max_in_flight: closed, max_wait: "100ms", hold: upstream_done}
  fixed: {max_in_flight: 1048575, max_wait: 0, refuse: {retry_after: 10s, body: json}}
  fixed-streams: {max_in_flight: 9, per_caller: {fair: true, by: {header: X-Company}}, streams: release, acquire: body}
deadline: {header: x-request-timeout}
retries: {attempt_header: x-retry-attempt, key_header: Idempotency-Key}
lanes:
  orders: {rank: 1, share: 30%, max_share: 75%}
  Reports.2: {rank: 1000, share: 70%}
  ops: {rank: 2, reserved: 5}
  nobody: {rank: 3, reserved: 0}
intake: {max_bytes: 128MiB, read_ahead: 16KiB, discard: 1MiB, discard_time: 1s, discard_total: 512MiB}
spool: {memory: 128MiB, per_answer: 2MiB, directory: /var/cache/forebay, disk: 4GiB}
cluster:
  redis_file: testdata/redis.url
  tls: {ca_file: testdata/redis-ca.pem}
  name: shop
  host: web1
  lease: 5s
  when_store_is_away: closed
  min_share: 1
  withhold: 10s
  idle_hold: 0
  gates:
    reports: {when_store_is_away: share, idle_hold: 20ms}
    shut: {}
routes:
  - match: GET api.example/reports/{id}
    gates: [reports, fixed]
    lane: Reports.2
  - {match: /orders/, gate: fixed, lane: orders}
  - {match: /ops/, gates: [fixed, fixed-streams], lane: ops}
  - {match: /status, answer: health}
  - {match: "/a%20b/{rest...}", gate: shut}
  - {match: /, gate: fixed, exempt: false}
`

func TestEveryKey(t *testing.T) {
	c := mustParse(t, full)
	if c.Listen.Address != "unix:/run/forebay/web.sock" || c.Upstream.Scheme != "unix" || c.Upstream.Path != "/run/gunicorn.sock" {
		t.Errorf("Listen = %v, Upstream = %v", c.Listen, c.Upstream)
	}
	if want := (Admin{"0.0.0.0:9001", "testdata/admin.token", "0123456789abcdef0123456789abcdef"}); c.Admin != want {
		t.Errorf("Admin = %v, want %v", c.Admin, want)
	}
	if want := (Timeouts{2500 * time.Millisecond, 90 * time.Second, DefaultWrite, time.Hour, 0}); c.Timeouts != want || c.DrainTimeout != 0 {
		t.Errorf("Timeouts = %v, want %v; DrainTimeout = %v, want 0", c.Timeouts, want, c.DrainTimeout)
	}
	var proxies []netip.Prefix
	for _, s := range []string{"10.0.0.0/8", "127.0.0.1/32", "2001:db8::/32", "::1/128"} {
		proxies = append(proxies, netip.MustParsePrefix(s))
	}
	if !reflect.DeepEqual(c.TrustedProxies, proxies) {
		t.Errorf("TrustedProxies = %v, want %v", c.TrustedProxies, proxies)
	}
	if c.Deadline.Header != "X-Request-Timeout" || c.Retries != (Retries{"X-Retry-Attempt", "Idempotency-Key"}) {
		t.Errorf("Deadline = %v, Retries = %v", c.Deadline, c.Retries)
	}
	if want := (RequestID{"X-Correlation-Id", TrustEverybody}); c.RequestID != want {
		t.Errorf("RequestID = %v, want %v", c.RequestID, want)
	}
	if want := (Log{"/var/log/forebay.log", "off", "hashed", 1 << 30, 3}); c.Log != want {
		t.Errorf("Log = %v, want %v", c.Log, want)
	}
	want := forebay.Refusal{Status: 429, RetryAfter: forebay.RetryAfter{Min: 2 * time.Second, Max: time.Minute}, HideGate: true, HideReason: true,
		Body:        "{\"exc_type\":\"TooManyConcurrentRequests\",\"message\":\"{title}\",\"retry_after\":{retry_after}}\n",
		ContentType: "application/vnd.shop+json", Headers: http.Header{"X-Served-By": {"forebay"}, "X-Queue": {"orders, please"}},
		CORS: forebay.CORS{Origins: []string{"https://shop.example", "http://localhost:3000"}, Credentials: true}}
	if g := c.Gate("reports"); !reflect.DeepEqual(g.Refusal, want) || g.Pool != "5" || g.MaxWait != 1500*time.Millisecond {
		t.Errorf("reports = %+v", g)
	}
	if g := c.Gate("reports"); g.Hold != forebay.HoldFirstByte || g.StreamsGate != "fixed-streams" || g.Streams != (forebay.Streams{MaxLife: time.Hour, MaxIdle: 5 * time.Minute}) {
		t.Errorf("reports = %+v", g)
	}
	if u, want := c.Gate("reports").Upload, (forebay.Upload{BodyFirst: 256 << 10, MinRate: 2 << 10, Grace: 10 * time.Second, MaxTime: time.Minute}); u != want {
		t.Errorf("the uploads of reports = %+v, want %+v", u, want)
	}
	if n := c.Gate("fixed-streams").Upload.BodyFirst; n != DefaultBodyFirst {
		t.Errorf("acquire: body has the bound %d, want %d", n, DefaultBodyFirst)
	}
	if want := (Intake{128 << 20, 16 << 10, 1 << 20, time.Second, 512 << 20}); c.Intake != want {
		t.Errorf("Intake = %+v, want %+v", c.Intake, want)
	}
	if want := (Spool{128 << 20, 2 << 20, "/var/cache/forebay", 4 << 30}); c.Spool != want || !c.Spools() {
		t.Errorf("Spool = %+v, want %+v; used: %v", c.Spool, want, c.Spools())
	}
	if g := c.Gate("fixed-streams"); g.StreamsGate != "" || g.Streams != (forebay.Streams{Release: true}) {
		t.Errorf("fixed-streams = %+v", g)
	}
	if g := c.Gate("shut"); !g.Closed || g.Hold != forebay.HoldUpstreamDone || g.MaxWait != 100*time.Millisecond {
		t.Errorf("shut = %+v", g)
	}
	if g := c.Gate("fixed"); g.Refusal.RetryAfter.Fixed != 10*time.Second || g.MaxWait != 0 || g.MaxInFlight != 1048575 {
		t.Errorf("fixed = %+v", g)
	}
	if want := (Cluster{
		Redis: "rediss://forebay:s3cret@10.0.0.5:6380/0", RedisFile: "testdata/redis.url", TLS: c.Cluster.TLS,
		Name: "shop", Host: "web1", Lease: 5 * time.Second,
	}); *c.Cluster != want {
		t.Errorf("Cluster = %v, want %v", *c.Cluster, want)
	}
	if got := c.Cluster.TLS; got == nil || got.CAFile != "testdata/redis-ca.pem" || got.CertFile != "" {
		t.Errorf("TLS = %v, want the authority alone", got)
	}
	if got, want := *c.Gate("reports").Terms, (Terms{MinShare: 1, Withhold: 10 * time.Second, IdleHold: 20 * time.Millisecond}); got != want {
		t.Errorf("terms of reports = %+v, want %+v", got, want)
	}
	if got, want := *c.Gate("shut").Terms, (Terms{WhenAway: cluster.Closed, IdleHold: -1}); got != want {
		t.Errorf("terms of shut = %+v, want %+v", got, want)
	}
	if g := c.Gate("fixed"); g.Terms != nil {
		t.Errorf("fixed, which shares nothing, has the terms %+v", *g.Terms)
	}
	if r := c.Routes[3]; r.Answer != "health" || r.Exempt || r.Gates != nil {
		t.Errorf("/status = %+v", r)
	}
}

func TestDefaults(t *testing.T) {
	c := mustParse(t, small)
	if c.Listen.Address != "127.0.0.1:8080" || c.Admin.Address != "127.0.0.1:8081" {
		t.Errorf("Listen, Admin = %v, %v", c.Listen, c.Admin)
	}
	if want := (Log{To: "stderr", Decisions: "refused", RemoteIP: "truncated"}); c.Log != want {
		t.Errorf("Log = %v, want %v", c.Log, want)
	}
	if c.FrontTimeout != 0 || c.Pools != nil || c.TrustedProxies != nil {
		t.Errorf("FrontTimeout, Pools, TrustedProxies = %v, %v, %v; want nothing", c.FrontTimeout, c.Pools, c.TrustedProxies)
	}
	if c.Cluster != nil || c.Gate("a").Terms != nil {
		t.Errorf("Cluster = %v, terms of a = %v; want none", c.Cluster, c.Gate("a").Terms)
	}
	c = mustParse(t, small+"cluster: {redis: redis://127.0.0.1, gates: [a]}\n")
	if want := (Cluster{Redis: "redis://127.0.0.1", Name: "forebay", Lease: 2 * time.Second}); *c.Cluster != want {
		t.Errorf("Cluster = %v, want %v", *c.Cluster, want)
	}
	if want := (Terms{IdleHold: 50 * time.Millisecond}); *c.Gate("a").Terms != want {
		t.Errorf("terms of a = %+v, want %+v", *c.Gate("a").Terms, want)
	}
	if (c.At("listen") != Pos{}) {
		t.Errorf("the default of listen stands at %v", c.At("listen"))
	}
	if want := (Spool{Memory: 64 << 20, PerAnswer: 1 << 20}); c.Spool != want || c.Spools() {
		t.Errorf("Spool = %+v, want %+v; used: %v", c.Spool, want, c.Spools())
	}
	if got := mustParse(t, small+"spool: {directory: /x/}\n").Spool; got.Directory != "/x" || got.Disk != 1<<30 {
		t.Errorf("a spool with a directory = %+v", got)
	}
	log := mustParse(t, small+"log: {to: /x.log}\n").Log
	if log.MaxSize != 64<<20 || log.Keep != 5 {
		t.Errorf("a log file gets %d bytes, %d kept; want 64 MiB, 5", log.MaxSize, log.Keep)
	}
}

// TestSpellings: what is no mistake, whatever strict means.
func TestSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"byte order mark":          "\ufeff" + small,
		"CRLF":                     strings.ReplaceAll(small, "\n", "\r\n"),
		"both":                     "\ufeff" + strings.ReplaceAll(small, "\n", "\r\n"),
		"no final line end":        strings.TrimSuffix(small, "\n"),
		"document start":           "---\n" + small,
		"document end":             small + "...\n",
		"comments with tabs":       "\t# a comment\n" + small + "\t\n# end\t\n",
		"a tab after a colon":      small + "drain_timeout:\t5s\n",
		"unused gates":             strings.Replace(small, "gates: {", "gates: {b: {max_in_flight: 1}, ", 1),
		"a port of any kind":       small + "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n",
		"IPv6":                     small + "listen: '[::1]:8080'\nadmin: '[::1]:8081'\n",
		"localhost":                small + "listen: localhost:9000\n",
		"every address":            small + "listen: :9000\n",
		"admin socket":             small + "admin: unix:/run/admin.sock\n",
		"no proxies":               small + "trusted_proxies: []\n",
		"no pools":                 small + "pools: {}\n",
		"a rest wildcard for /":    strings.Replace(small, "match: /", "match: '/{all...}'", 1),
		"all exempt":               strings.Replace(small, "gate: a", "exempt: true", 1),
		"a name of digits, quoted": strings.ReplaceAll(strings.ReplaceAll(small, "{a:", `{"7":`), " a}", ` "7"}`),
		"a name that looks odd":    strings.ReplaceAll(strings.ReplaceAll(small, "{a:", "{a.b/c-d:"), "gate: a", "gate: a.b/c-d"),
		"an umlaut in a path":      strings.Replace(small, "[{", "[{match: /bücher/, gate: a}, {", 1),
		"upstream with a slash":    strings.Replace(small, ":8000", ":8000/", 1),
		"upstream over TLS":        strings.Replace(small, "http://127.0.0.1:8000", "https://backend.example", 1),
		"upstream with IPv6":       strings.Replace(small, "http://127.0.0.1:8000", "'http://[::1]:8000'", 1),
		"upstream in upper case":   strings.Replace(small, "http:", "HTTP:", 1),
	} {
		t.Run(name, func(t *testing.T) { mustParse(t, text) })
	}
}

func TestRoundTrip(t *testing.T) {
	for name, text := range map[string]string{"contract": contract, "small": small, "full": full, "example": Example} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, text)
			again := mustParse(t, c.YAML())
			if c.YAML() != again.YAML() {
				t.Errorf("first:\n%s\nthen:\n%s", c.YAML(), again.YAML())
			}
			forgetPlaces(c)
			forgetPlaces(again)
			if !reflect.DeepEqual(c, again) {
				t.Errorf("%+v\nbecame\n%+v", c, again)
			}
		})
	}
}

// forgetPlaces drops what depends on how a file is written.
func forgetPlaces(c *Config) {
	c.at, c.Hash = nil, ""
	if len(c.Pools) == 0 {
		c.Pools = nil
	}
	for i := range c.Gates {
		c.Gates[i].Pos = Pos{}
	}
	for i := range c.Routes {
		c.Routes[i].Pos = Pos{}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "forebay.yaml")
	if _, err := Load(path); !os.IsNotExist(errorCause(err)) {
		t.Errorf("a file that is not there gives %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory is accepted")
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("forebay.yaml", small+"admin: {listen: :9001, token_file: admin.token}\n")
	write("admin.token", "s3cret\r\n")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Admin.Token != "s3cret" || c.Path != path || len(c.Hash) != 12 {
		t.Errorf("Token, Path, Hash = %q, %q, %q", c.Admin.Token, c.Path, c.Hash)
	}
	was := c.Hash
	write("forebay.yaml", small)
	if c, err = Load(path); err != nil || c.Hash == was {
		t.Errorf("another content has the hash %s as well, or fails: %v", was, err)
	}
	write("forebay.yaml", strings.Repeat("# much ado\n", maxSize/10))
	if _, err = Load(path); err == nil || !strings.Contains(err.Error(), ":1:1: the file has more than 256 KiB") {
		t.Errorf("a file that is too large gives %v", err)
	}
}

func errorCause(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}
