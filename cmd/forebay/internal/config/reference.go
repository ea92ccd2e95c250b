package config

import (
	"slices"
	"strings"
)

// Key is one key as docs/config.md explains it.
type Key struct {
	Name      string // the whole path: "gates.NAME.max_wait"
	Takes     string
	Default   string // "required" where there is none
	Why       string // that default
	HalfTwice string // what half or twice the right value does
	Example   string // a value, as it stands after the colon
}

// level is the mapping that the key stands in: "gates.NAME".
func (k Key) level() string {
	i := strings.LastIndexByte(k.Name, '.')
	return k.Name[:max(i, 0)]
}

func (k Key) last() string { return k.Name[strings.LastIndexByte(k.Name, '.')+1:] }

// levelsOf returns the mappings that have a key of that name.
func levelsOf(keys []Key, name string) (levels []string) {
	for _, k := range keys {
		if k.last() == name && !slices.Contains(levels, placeOf(k)) {
			levels = append(levels, placeOf(k))
		}
	}
	return levels
}

func placeOf(k Key) string {
	if k.level() == "" {
		return "the top level"
	}
	return k.level()
}

// reference is every key there is, in the order of the documentation. NAME stands
// for a name that the operator gives, [] for any place in a list.
var reference = slices.Concat(programKeys, againKeys, gateKeys, autoKeys, corsKeys, refusalKeys, slotKeys, uploadKeys, spoolKeys, laneKeys, clusterKeys, routeKeys)

var programKeys = []Key{
	{"listen", "IP:PORT, :PORT, localhost:PORT or unix:/PATH; port 0 is any that is free", DefaultListen,
		"what nobody has decided to open is open to this machine only", "", "127.0.0.1:8080"},
	{"tls.cert_file", "a path, relative ones from the file's directory, to a certificate in PEM with those that lead to its authority", "none: requests come in the clear",
		"what stands in front has the certificate, mostly. The files are looked at as clients connect, at most once a second: another certificate is used from then on, and with files that do not fit together the one before, which is logged", "", "server.pem"},
	{"tls.key_file", "a path, relative ones from the file's directory, to its key in PEM", "none",
		"one goes with the other. A reload may name other files, and cannot begin or end TLS", "", "server.key"},
	{"connections.max", "a whole number from 1 to 1048575, lowered to what there are descriptors for", "as many as the program has descriptors for: all but 200 and four for each request that the gates let run, and half of them at least",
		"the upstream, the admin port, the log and Redis need some as well. Above it the connection goes that has waited longest for its first request, else the one that has been idle longest; if all are busy the newcomer is answered 503",
		"Half: kept connections are closed early. Twice: there are no descriptors for it.", "4096"},
	{"connections.per_address", "a whole number from 1 to 1048575: how many one address may have, of IPv6 one caller.ipv6_prefix. Those of trusted_proxies are not counted", "none",
		"offices and mobile networks share an address. With a proxy in front it is that one's to bound",
		"Half of what browsers open (6 over HTTP/1): pages load slowly. Twice what you see in a busy hour: room enough, and one address cannot have all.", "100"},
	{"admin", "an address as of listen, or a mapping", DefaultAdmin,
		"it can close gates, so strangers must not reach it", "", "127.0.0.1:8081"},
	{"admin.listen", "an address as of listen", DefaultAdmin,
		"beyond this machine only together with token_file", "", "0.0.0.0:8081"},
	{"admin.token_file", "a path, relative ones from the file's directory; the content is the token, up to 4096 characters", "none",
		"nobody else reaches a listener on 127.0.0.1", "", "/etc/forebay/admin.token"},
	{"upstream", "http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT (HTTP/2 without encryption; upgrades, such as to WebSocket, are asked for in HTTP/1.1, which has them alone) or unix:/PATH, one", "required",
		"balancing is the work of what stands in front", "", "http://127.0.0.1:8000"},
	{"transport", "lean or standard: what speaks HTTP/1.1 to an upstream without encryption", "lean",
		"it takes two thirds of the processor time of the standard one, which is Go's own and does the same. https and HTTP/2 always take the standard one", "", "lean"},
	{"server", "lean or standard: what answers a client of HTTP/1.1 without TLS that sends a GET or a HEAD without a body", "lean",
		"it refuses at half of the processor time of the standard one, which is Go's own, answers all else and sends the same bytes. A reload does not change it", "", "lean"},
	{"drain_timeout", "a duration, 0 to 24h", "30s",
		"it lets a request that began just before SIGTERM use the whole upstream_response",
		"Half: slow answers are cut at every restart. Twice: restarts take as long as the slowest request, and a service manager may kill the program first.", "30s"},
	{"timeouts.read_header", "a duration, 1ms to 24h", "5s",
		"a header fits into one packet; who needs longer holds a connection for nothing",
		"Half: callers on bad networks are cut. Twice: slow senders hold twice as many connections.", "5s"},
	{"timeouts.idle", "a duration, 1ms to 24h", "75s",
		"longer than the 60s for which nginx keeps a connection, so that it is never closed under a request",
		"Half: a front proxy sends into connections that are just being closed. Twice: idle connections cost memory for longer.", "75s"},
	{"timeouts.write", "a duration, 1ms to 24h: how long a client may take in nothing of what it is sent, then its connection ends", "30s",
		"who reads at all reads something within seconds, and one who does not holds a slot, memory and a connection of the upstream's",
		"Half: clients on networks that fail for a moment are cut. Twice: slow readers hold twice as many slots.", "30s"},
	{"timeouts.upstream_response", "a duration, 1ms to 24h", "30s",
		"just above what applications allow themselves (gunicorn: 30s), so that theirs is the better answer; to the first byte, not the last",
		"Half: slow answers that would have come are 504, and their work was for nothing. Twice: a dead upstream keeps slots for a minute.", "30s"},
	{"timeouts.still_running", "a duration, 0 to 24h: how long a request that was answered 504, after upstream_response, may keep its slot while the upstream still works on it. It gives it back when the upstream answers or closes the connection, and when this is over, which closes the connection. 0: at once", "5m",
		"closing a connection ends hardly any backend's work: the next request would run beside it, above the limit. What is still not done after so long hangs, mostly",
		"Half: work that takes longer runs beside the limit. Twice: a backend that hangs keeps its slots for twice as long; a restart of it gives them back at once.", "5m"},
	{"front_timeout", "a duration, 1ms to 24h: how long what stands in front waits (nginx proxy_read_timeout, HAProxy timeout server)", "not known",
		"it cannot be seen from here; with it `check` proves that the front never gives up first", "", "60s"},
	{"pools.NAME", "a whole number from 1: the size of what calls of several gates use up", "none",
		"it cannot be seen from here; with it `check` adds up the gates that share it",
		"It changes nothing at run time; a wrong one makes `check` wrong.", "20"},
	{"trusted_proxies", "a list of networks and addresses", "none",
		"a header is taken only from a peer that is known to set it",
		"Too few: every caller seems to be the front proxy. Too many: callers choose their own address.", "[10.0.0.0/8, 127.0.0.1]"},
	{"proxy_protocol", "true or false: whether the connections of trusted_proxies begin with a PROXY header, of version 1 or 2, with the caller's address. They must, then; everybody else's are taken as they are", "false",
		"what is read by guess a stranger can write. true is for what stands in front and hands on connections, not requests (HAProxy in mode tcp, load balancers of clouds); its own checks have to send the header too", "", "false"},
	{"caller.header", "X-Forwarded-For or Forwarded: where a trusted proxy says whom it asks for", "X-Forwarded-For",
		"it is what nearly all of them set. Only one is read: a proxy that sets the one lets callers write the other", "", "X-Forwarded-For"},
	{"caller.ipv6_prefix", "a whole number from 32 to 128: the bits of an IPv6 address that make one caller", "64",
		"it is what one customer has at least, and who has it can choose every address in it",
		"Shorter, such as 56 or 48: neighbours at providers that give out less count as one. Longer: one caller is as many as it likes.", "64"},
	{"request_id.header", "the name of a header", "X-Request-Id",
		"it is the one that most programs know", "", "X-Request-Id"},
	{"request_id.trust", "trusted_proxies, everybody or nobody: whose id is kept; others get a new one", "trusted_proxies",
		"a stranger's id would let him forge other people's log lines", "", "trusted_proxies"},
	{"log.to", "stderr, syslog, or the absolute path of a file", "stderr",
		"service managers and containers collect it", "", "/var/log/forebay.log"},
	{"log.decisions", "refused, all or off", "refused",
		"they are what somebody will ask about; at most ten lines a second and gate", "", "refused"},
	{"log.remote_ip", "truncated (to /24 and /48), full, hashed or off", "truncated",
		"an address is personal data, and the network is enough to find a crawler", "", "truncated"},
	{"log.max_size", "a size, 1MiB to 1024GiB, for a file only", "64MiB",
		"an editor opens it, and five of them fit anywhere",
		"Half: the history is half as long. Twice: mind the disk.", "64MiB"},
	{"log.keep", "a whole number from 1 to 1000, for a file only", "5",
		"with 64MiB each, some hundred thousand refusals", "Half or twice: so is the history.", "5"},
}

var gateKeys = []Key{
	{"gates.NAME.max_in_flight", "a whole number from 1 to 1048575, auto, a mapping with the key auto, or closed", "required",
		"no number is safe for a backend that is not known. A pool of 20 connections carries 12 to 16, four synchronous workers carry 4. 0 is refused: it could mean closed or no limit",
		"Half: the backend idles while callers are refused. Twice: calls queue inside the backend, where nobody sees them.", "12"},
	{"gates.NAME.max_wait", "a duration, 0 to 24h", "0: refuse at once",
		"waiting must be wanted. Tens of milliseconds smooth bursts",
		"Half of 100ms: nearly as good. Twice: refusals come later, and from 1s on callers wait in line for an answer that they no longer want.", "100ms"},
	{"gates.NAME.max_waiting", "a whole number from 1 to 1048575; only with max_wait", "as many as get their slot within max_wait, and at least twice the limit",
		"then a call with hardly a chance to be served within its patience is refused on arrival as well, and a line that does not end is kept as short as the backend needs it to stay busy: at twice the load about ten, at ten times four. A number given is a promise, and only length and patience refuse",
		"Half: ordinary bursts are refused. Twice: the line fills with calls that time out.", "24"},
	{"gates.NAME.pool", "the name of a pool", "none",
		"what a gate's calls use up cannot be seen from here", "", "db"},
	{"gates.NAME.per_caller.max_in_flight", "a whole number from 1 to 1048575: how many requests of one caller may run at once. Further ones wait in line for one of the same caller to end, in half of the line at most; whoever has waited in vain for it is answered 429", "none: one caller may have the whole gate",
		"callers behind one address (an office, a mobile network) would be refused for each other, so it must be wanted. It counts requests, not connections; give browsers, which ask for dozens at once over one connection, a max_wait as well",
		"Half of the gate's max_in_flight: one greedy caller leaves the other half to the rest. Half of that: two of them do, and a page with many pictures takes longer. Twice: it bounds nothing.", "2"},
	{"gates.NAME.per_caller.fair", "true or false: whether a place in a full line goes to who has less. Whoever has most, running and in line, gives up his newest place, answered 429, to one who would still have less with it. Without max_wait it does nothing", "false",
		"callers behind one address count as one, so it must be wanted. It bounds nobody while there is room: with max_in_flight too, one caller's crowd neither fills the line nor the slots", "", "true"},
	{"gates.NAME.per_caller.by", "address, or a mapping", "address",
		"it is all that a stranger cannot choose; of IPv6 the first caller.ipv6_prefix bits count", "", "address"},
	{"gates.NAME.per_caller.by.header", "the name of a header that trusted_proxies set. It is taken from everybody else's requests; a request without it counts by its address, and of several lines the last one counts and goes on", "none",
		"who calls is known to whoever has checked it", "", "X-Company"},
	{"gates.NAME.per_caller.max_callers", "a whole number from 1 to 1048575: how many callers with calls under way are told apart", "16384",
		"each costs some 150 bytes, and no gate has as many calls running and in line. The calls of further ones share one bound, and are counted in forebay_callers_beyond_total",
		"Half: long lines may need more. Twice: 5 MB.", "16384"},
	{"gates.NAME.per_caller.status", "a whole number from 400 to 599, for the refusals of who has too much", "429",
		"it is the caller who has too much, not the server", "", "429"},
	{"gates.NAME.refuse.status", "a whole number from 400 to 599, for the refusals that waiting cures", "503",
		"the server is full; 429 would blame the caller", "", "503"},
	{"gates.NAME.refuse.retry_after", "bounds, or a constant in whole seconds", "computed",
		"how long the line takes, with a random part, so that those refused together do not come back together; a constant brings the crowd back at once", "", "10s"},
	{"gates.NAME.refuse.retry_after.min", "whole seconds, 1s to 24h", "1s",
		"the protocol knows nothing shorter", "Twice: callers stay away longer than they need to after a short burst.", "1s"},
	{"gates.NAME.refuse.retry_after.max", "whole seconds, 1s to 24h", "30s",
		"callers come back while they still want the answer",
		"Half: callers come back in the middle of long incidents. Twice: they stay away from a backend that has recovered.", "30s"},
	{"gates.NAME.refuse.body", "json, problem for application/problem+json whatever the caller accepts, or a mapping that names a file", "json",
		"it is the smaller one; who asks for problem+json gets it anyway", "", "json"},
}

var clusterKeys = []Key{
	{"cluster.redis", "a URL: redis://USER:PASSWORD@HOST:PORT, rediss:// for TLS, unix:///PATH; further servers of a Redis Cluster, or sentinels, as ?addr=HOST:PORT&addr=HOST:PORT, with sentinels &master_set=NAME; besides db, client_name, dial_timeout, write_timeout, protocol, skip_verify", "none: it is required unless redis_file is given",
		"nobody else can say where it is. A password is better kept in redis_file; it is printed nowhere", "", "redis://127.0.0.1:6379"},
	{"cluster.redis_file", "a path, relative ones from the file's directory; the content is such a URL", "none",
		"what holds no password need not be kept apart", "", "/etc/forebay/redis.url"},
	{"cluster.sentinel_username", "1 to 64 letters, digits and any of - _ . / :", "the default user",
		"Sentinels have users of their own, and most have none but that", "", "forebay"},
	{"cluster.sentinel_password_file", "a path, relative ones from the file's directory; the content is the password of the Sentinels that the URL names", "none",
		"most Sentinels want none; the user and password in the URL are those of Redis. It is printed nowhere", "", "/etc/forebay/sentinel.password"},
	{"cluster.tls.ca_file", "a path, relative ones from the file's directory; certificates in PEM, at most 1 MiB", "the authorities of the machine",
		"a Redis that others run has a certificate of a known authority. With this key those in the file are trusted, and nobody else", "", "/etc/forebay/redis-ca.pem"},
	{"cluster.tls.cert_file", "a path, relative ones from the file's directory; a certificate in PEM, and those between it and its authority; with key_file", "none",
		"only a Redis with tls-auth-clients yes wants one. It is read anew for each connection, so one that expires can be replaced without a word", "", "/etc/forebay/redis.pem"},
	{"cluster.tls.key_file", "a path, relative ones from the file's directory; the certificate's private key in PEM, without a password", "none",
		"it belongs to cert_file", "", "/etc/forebay/redis.key"},
	{"cluster.gates", "a list of names, or a mapping from names to what is different for that gate", "required",
		"their max_in_flight is one for all programs with the same redis, name and gate; of different ones the lowest is in force. The other gates are this program's own", "", "[reports]"},
	{"cluster.gates.NAME.when_store_is_away", "share, closed or open", "that of the cluster",
		"one gate may have to be exact where another has to be open", "", "closed"},
	{"cluster.gates.NAME.min_share", "a whole number from 0", "that of the cluster", "limits differ from gate to gate", "", "1"},
	{"cluster.gates.NAME.withhold", "a duration, 0 to 24h", "that of the cluster", "so does what it costs to exceed them", "", "10s"},
	{"cluster.gates.NAME.idle_hold", "a duration, 0 to 1m", "that of the cluster", "so do the pauses between calls", "", "50ms"},
	{"cluster.when_store_is_away", "share: each program lets in limit ÷ programs, rounded down; closed: nobody is let in, as rejected_store; open: each program lets in the whole limit", "share",
		"the service goes on, and the limit holds if all are cut off. closed: Redis is as needed as the backend is. open: two programs may send twice the limit", "", "share"},
	{"cluster.min_share", "a whole number from 0; with share only", "0",
		"it is exact. Where there are more programs than slots, 0 leaves nobody any, and 1 goes above the limit",
		"Times the number of programs it should stay below the limit; check says so.", "1"},
	{"cluster.withhold", "a duration, 0 to 24h; with share only", "0: nothing is withheld",
		"if only some programs are cut off, the others use the whole limit and those their share: too many together. For as long as this says the others leave that share alone, and the program that is cut off uses it no longer than that, and not before 1.65 leases. It costs the share of a program that crashed for as long",
		"Half: programs that are cut off stand still sooner. Twice: a crash costs their share for twice as long.", "10s"},
	{"cluster.lease", "a duration, 500ms to 1m", "2s",
		"for so long a program may use its slots after it last heard from Redis; 1.6 times it and a second later those of one that died are lent again",
		"Half: a busy machine loses slots that it could have kept. Twice: a crash costs capacity for twice as long.", "2s"},
	{"cluster.idle_hold", "a duration, 0 to 1m", "50ms",
		"so long a slot stays here for the next call while nobody misses it elsewhere; then that call needs no word with Redis. 0: it goes back at once",
		"Half or twice: more or fewer words with Redis where calls come one by one.", "50ms"},
	{"cluster.name", "1 to 64 letters, digits and any of - _ . / :", "forebay",
		"the prefix of the keys in Redis; programs with another one share nothing", "", "shop"},
	{"cluster.host", "1 to 64 letters, digits and any of - _ . / :", "the name of the machine",
		"what people call this program in statistics; containers have names that say nothing", "", "web1"},
}

var routeKeys = []Key{
	{"routes[].match", "a pattern of Go's net/http: [METHOD ][HOST]/path with {name}, {name...} and {$}", "required",
		"the most specific one wins, whatever the order. A path that ends in / matches all below it, GET matches HEAD as well", "", "GET /reports/"},
	{"routes[].gate", "the name of a gate", "a route has gate, gates, exempt or answer",
		"a route that leads nowhere is a mistake", "", "reports"},
	{"routes[].gates", "a list of names: passed in this order, all or none, with the smallest max_wait of all as patience", "a route has gate, gates, exempt or answer",
		"for calls that use two things at once; name them in one order everywhere", "", "[orders, reports]"},
	{"routes[].lane", "the name of a lane, of the requests at each of the route's gates. It comes from the route alone, whatever a request says; one that other readings of its path bring to routes of other lanes has none", "none: they come after all lanes",
		"where nobody has said who goes first all are equal", "", "order-intake"},
	{"routes[].cost", "how many units of each of its gates a request takes: a whole number from 1 to what the gate can give, which is max_in_flight less what lanes reserve for others", "1",
		"the right number is how many ordinary calls one such call is worth to what the gate stands for. Half of it lets the backend be overloaded by calls that count too little; twice it leaves part of it idle", "", "4"},
	{"routes[].exempt", "true or false", "false",
		"for health checks and metrics, which must be answered while the line is full", "", "true"},
	{"routes[].answer", "health: answered by the program itself, without a slot", "none",
		"requests go to the upstream", "", "health"},
}
