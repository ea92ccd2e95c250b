package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Secret is a URL that may hold a password. However it is printed, that is left out.
type Secret string

// String returns the URL without its password.
func (s Secret) String() string {
	u, err := url.Parse(string(s))
	if err != nil {
		return "…"
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), "PASSWORD")
	}
	return u.String()
}

// GoString returns what String does, for %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText returns what String does, for JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// HasPassword reports whether there is something to keep secret.
func (s Secret) HasPassword() bool {
	u, err := url.Parse(string(s))
	if err != nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

// Reached tells where it is, as [Loopback] takes it, whether by TLS, and whether the
// certificate is looked at.
func (s Secret) Reached() (address string, tls, verified bool) {
	u, err := url.Parse(string(s))
	switch {
	case err != nil:
		return "", false, false
	case u.Scheme == "unix":
		return "unix:" + u.Path, false, false
	case u.Port() == "":
		address = net.JoinHostPort(u.Hostname(), "6379")
	default:
		address = u.Host
	}
	tls = u.Scheme == "rediss" || u.Scheme == "valkeys"
	skip, _ := strconv.ParseBool(u.Query().Get("skip_verify"))
	return address, tls, tls && !skip
}

// namesSentinels reports whether it is Sentinels that the URL names.
func (s Secret) namesSentinels() bool {
	u, err := url.Parse(string(s))
	return err == nil && u.Query().Has("master_set")
}

const redisExample = "redis://127.0.0.1:6379"

// redis reads where the store is.
func (r *clusterReader) redis(v value) Secret {
	s, ok := r.text(v, redisExample)
	if !ok {
		return ""
	}
	if what, remedy := checkRedis(s); what != "" {
		r.wrongValue(v, remedy, "is %s, %s", shorten(shownAddress(s)), what)
		return ""
	}
	return Secret(s)
}

// shownAddress is what may be shown of an address that is wrong: of one that cannot be
// taken apart the scheme alone, since a password may stand anywhere in it.
func shownAddress(s string) string {
	scheme, _, isURL := strings.Cut(s, "://")
	if _, err := url.Parse(s); err != nil && isURL {
		return scheme + "://…"
	}
	return withoutSecret(s)
}

// readRedis reads the URL from a file, whose content is shown to nobody.
func (r *clusterReader) readRedis(v value) {
	s, ok := r.secretFile(v, "write the URL into it in one line, readable for this program alone: redis://:PASSWORD@HOST:6379")
	if !ok {
		return
	}
	if what, remedy := checkRedis(s); what != "" {
		r.wrongValue(v, "in it, "+remedy, "names a file with an address %s", what)
		return
	}
	r.config.Cluster.Redis = Secret(s)
}

const redisForms = "write redis://HOST:PORT, rediss://HOST:PORT for TLS, or unix:///PATH"

// checkRedis says what is wrong with a URL, without saying what it holds. What the
// client would ignore is refused: a misspelt master_set would ask a sentinel for
// slots.
func checkRedis(s string) (what, remedy string) {
	if !strings.Contains(s, "://") {
		if what, _ := checkAddress(s, "127.0.0.1:6379"); what == "" {
			return "without a scheme", "write redis://" + s
		}
		return "which is no URL", redisForms
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "which is no URL", redisForms + "; in a password, write %40 for @, %2F for / and so on"
	case !slices.Contains([]string{"redis", "rediss", "valkey", "valkeys", "unix"}, u.Scheme):
		return fmt.Sprintf("and %s is not spoken to Redis", shorten(u.Scheme)), redisForms
	case u.Fragment != "":
		return "with a fragment", "in a password, write %23 for #"
	case u.Scheme == "unix":
		what, remedy = checkRedisSocket(u)
	default:
		what, remedy = checkRedisHost(u)
	}
	if what == "" {
		what, remedy = checkRedisParameters(u)
	}
	return what, remedy
}

func checkRedisSocket(u *url.URL) (what, remedy string) {
	switch {
	case u.Host != "":
		return "and the socket has no absolute path", "write unix:/// and the whole path"
	case !filepath.IsAbs(u.Path):
		return "without a path", "write unix:///run/redis/redis.sock"
	case len(u.Path) > longestSocket:
		return fmt.Sprintf("a socket with a path of %d bytes, too many for the operating system", len(u.Path)), fmt.Sprintf("take one of at most %d bytes", longestSocket)
	}
	return "", ""
}

func checkRedisHost(u *url.URL) (what, remedy string) {
	if u.Hostname() == "" {
		return "without a host", redisForms
	}
	if what, remedy := checkPort(u.Host); what != "" {
		return what, remedy
	}
	database := strings.TrimPrefix(u.Path, "/")
	if n, err := strconv.Atoi(database); database != "" && (err != nil || n < 0 || !wholeNumber.MatchString(database)) {
		return fmt.Sprintf("and %q is no number of a database", shorten(database)), fmt.Sprintf("write %s://HOST:PORT/0, or leave it out", u.Scheme)
	}
	return "", ""
}

// checkPort finds what is no port in a host that may have one.
func checkPort(host string) (what, remedy string) {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			return "an IPv6 address without brackets", fmt.Sprintf("write [%s]:6379", host)
		}
		return "", "" // none
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Sprintf("and %q is no port", port), "write a port from 1 to 65535"
	}
	return "", ""
}

// redisParameters are what may stand behind the question mark.
var redisParameters = []string{"addr", "master_set", "db", "client_name", "dial_timeout", "write_timeout", "protocol", "skip_verify"}

func checkRedisParameters(u *url.URL) (what, remedy string) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "with parameters that cannot be read", "write ?NAME=VALUE&NAME=VALUE"
	}
	for _, name := range sortedKeys(q) {
		if !slices.Contains(redisParameters, name) {
			remedy := "the parameters are " + strings.Join(redisParameters, ", ")
			if near := nearest(name, redisParameters); near != "" {
				remedy = fmt.Sprintf("did you mean %s?", near)
			}
			return fmt.Sprintf("with the unknown parameter %s", shorten(name)), remedy
		}
		if name != "addr" && len(q[name]) > 1 {
			return fmt.Sprintf("with %s twice", name), "keep one of the two"
		}
		for _, s := range q[name] {
			if remedy := wrongParameter(u, name, s); remedy != "" {
				return fmt.Sprintf("with %s=%s", name, shorten(s)), remedy
			}
		}
	}
	if len(q["addr"]) > 0 && !q.Has("master_set") && (q.Get("db") != "" && q.Get("db") != "0" || strings.Trim(u.Path, "/0") != "") {
		return "a Redis Cluster with the number of a database", "leave the number out: a cluster has database 0 alone"
	}
	return "", ""
}

// wrongParameter returns what would be right in place of the value s, "" if that is.
func wrongParameter(u *url.URL, name, s string) (remedy string) {
	switch name {
	case "addr":
		if what, _ := checkPort(s); what != "" || s == "" || u.Scheme == "unix" || strings.ContainsAny(s, "/@ ") {
			return "write addr=HOST:PORT for each further server, not with a socket"
		}
	case "master_set", "client_name":
		if s == "" || strings.ContainsAny(s, " \t") {
			return "write a name without spaces"
		}
	case "db":
		if n, err := strconv.Atoi(s); err != nil || n < 0 || strings.Trim(u.Path, "/") != "" && u.Scheme != "unix" {
			return "write the number of a database, in one place"
		}
	case "dial_timeout", "write_timeout":
		if d, err := time.ParseDuration(s); err != nil || d < shortest || d > longest {
			return fmt.Sprintf("write %s=1s, or another time from 1ms", name)
		}
	case "protocol":
		if s != "2" && s != "3" {
			return "write protocol=2 for servers that speak no RESP3, or leave it out"
		}
	case "skip_verify":
		if _, err := strconv.ParseBool(s); err != nil || u.Scheme != "rediss" && u.Scheme != "valkeys" {
			return "write skip_verify=true, with rediss only, or better leave it out"
		}
	}
	return ""
}

func sortedKeys(q url.Values) []string {
	keys := make([]string, 0, len(q))
	for k := range q {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
