package config

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// longestSocket is the shortest bound that an operating system of ours sets on the
// path of a Unix socket (macOS: 104 bytes with the final zero).
const longestSocket = 103

// address reads where to listen: "127.0.0.1:8080", ":8080", "[::1]:8080" or
// "unix:/path". Names other than localhost are refused, since whether one means this
// machine alone cannot be seen here. Port 0 is any that is free.
func (d *decoder) address(v value, otherwise, example string) string {
	if v.Kind == yaml.ScalarNode && !v.quoted() && wholeNumber.MatchString(v.Value) {
		d.wrongValue(v, fmt.Sprintf("write %s, or :%s for every address of the machine", example, v.Value), "is %s, a port without an address", v.Value)
		return otherwise
	}
	s, ok := d.text(v, example)
	if !ok {
		return otherwise
	}
	if path, isSocket := strings.CutPrefix(s, "unix:"); isSocket {
		if !d.socket(v, path) {
			return otherwise
		}
		return "unix:" + filepath.Clean(path)
	}
	if what, remedy := checkAddress(s, example); what != "" {
		d.wrongValue(v, remedy, "is %s, %s", s, what)
		return otherwise
	}
	return s
}

func checkAddress(s, example string) (what, remedy string) {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return "with a scheme", fmt.Sprintf("write %s (%s is spoken anyway)", strings.TrimRight(rest, "/"), strings.ToUpper(scheme))
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if ip, ipErr := netip.ParseAddr(strings.Trim(s, "[]")); ipErr == nil {
			return "an address without a port", "write " + net.JoinHostPort(ip.String(), example[strings.LastIndexByte(example, ':')+1:])
		}
		return "which is no address with a port", "write ADDRESS:PORT, such as " + example
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 || !wholeNumber.MatchString(port) {
		return fmt.Sprintf("and %q is no port", port), "write a port from 1 to 65535, or 0 for any that is free"
	}
	if host == "" || host == "localhost" {
		return "", ""
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Sprintf("and %q is no address of this machine for sure", host), "write an IP address, such as " + example
	}
	return "", ""
}

func (d *decoder) socket(v value, path string) bool {
	switch {
	case !filepath.IsAbs(path):
		d.wrongValue(v, "write unix:/ and the whole path", "is %s, and the socket has no absolute path", v.Value)
	case len(path) > longestSocket:
		d.wrongValue(v, fmt.Sprintf("take one of at most %d bytes", longestSocket), "is a socket with a path of %d bytes, too many for the operating system", len(path))
	default:
		return true
	}
	return false
}

// upstream reads where requests go.
func (d *decoder) upstream(v value) {
	const example = "http://127.0.0.1:8000"
	s, ok := d.text(v, example)
	if !ok {
		return
	}
	if path, isSocket := strings.CutPrefix(s, "unix:"); isSocket {
		path = strings.TrimPrefix(path, "//")
		if d.socket(v, path) {
			d.config.Upstream = &url.URL{Scheme: "unix", Path: filepath.Clean(path)}
		}
		return
	}
	u, err := url.Parse(s)
	if what, remedy := checkUpstream(u, err, s, example); what != "" {
		d.wrongValue(v, remedy, "is %s, %s", shorten(withoutSecret(s)), what)
		return
	}
	u.Path = ""
	d.config.Upstream = u
}

// withoutSecret leaves out what a URL says before an @, if it is one: a password
// would otherwise stand in logs.
func withoutSecret(s string) string {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return s
	}
	scheme, _, found := strings.Cut(s[:i], "://")
	if !found {
		return "…" + s[i:]
	}
	return scheme + "://…" + s[i:]
}

func checkUpstream(u *url.URL, err error, s, example string) (what, remedy string) {
	const forms = "write http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT or unix:/PATH"
	switch {
	case !strings.Contains(s, "://"):
		if what, _ := checkAddress(s, example); what == "" {
			return "without a scheme", "write http://" + s
		}
		return "which is no URL", forms
	case err != nil:
		return "which is no URL", forms
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return fmt.Sprintf("and %s is not spoken to an upstream", u.Scheme), forms
	case u.Hostname() == "":
		return "without a host", forms
	case u.User != nil:
		return "with a user or password, which would stand in logs", "take them out"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "with a query or a fragment", fmt.Sprintf("write %s://%s", u.Scheme, u.Host)
	case u.Path != "" && u.Path != "/":
		return "with a path, but paths are passed on as they come", fmt.Sprintf("write %s://%s", u.Scheme, u.Host)
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return fmt.Sprintf("and %q is no port", p), "write a port from 1 to 65535"
		}
	}
	return "", ""
}

// trustedProxies reads networks and single addresses.
func (d *decoder) trustedProxies(v value) {
	d.list(v, func(v value) {
		const example = "a network such as 10.0.0.0/8, or an address such as 127.0.0.1"
		s, ok := d.text(v, example)
		if !ok {
			return
		}
		if ip, err := netip.ParseAddr(s); err == nil && ip.Zone() == "" {
			ip = ip.Unmap()
			d.config.TrustedProxies = append(d.config.TrustedProxies, netip.PrefixFrom(ip, ip.BitLen()))
			return
		}
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			d.wrongValue(v, "write "+example, "is %s, no network", s)
		case p.Addr().Is4In6():
			d.wrongValue(v, "write it in its IPv4 form", "is %s, an IPv4 network in IPv6 form", s)
		case p != p.Masked():
			d.wrongValue(v, fmt.Sprintf("write %s for the network, or %s for the one address", p.Masked(), p.Addr()), "is %s, an address with a network's length", s)
		default:
			d.config.TrustedProxies = append(d.config.TrustedProxies, p)
		}
	})
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")

// notForIDs are headers with a meaning of their own.
var notForIDs = []string{"Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Te", "Trailer", "Upgrade",
	"Authorization", "Cookie", "Set-Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

func (d *decoder) header(v value, example string) (string, bool) {
	s, ok := d.text(v, example)
	if !ok {
		return "", false
	}
	h := textproto.CanonicalMIMEHeaderKey(s)
	switch {
	case !headerName.MatchString(s):
		d.wrongValue(v, "write a name such as "+example, "is %q, no name of a header", shorten(s))
	case slices.Contains(notForIDs, h):
		d.wrongValue(v, "write a name such as "+example, "is %s, which says something else", h)
	default:
		return http.CanonicalHeaderKey(s), true
	}
	return "", false
}

// logTo reads where the log goes, and tells whether it could.
func (d *decoder) logTo(v value) bool {
	s, ok := d.text(v, "stderr, syslog or /var/log/forebay.log")
	if !ok {
		return false
	}
	switch {
	case s == "stderr" || s == "syslog":
		d.config.Log.To = s
	case filepath.IsAbs(s):
		d.config.Log.To = filepath.Clean(s)
	default:
		remedy := "write stderr, syslog or the whole path of a file"
		if near := nearest(s, []string{"stderr", "syslog"}); near != "" {
			remedy = fmt.Sprintf("did you mean %s? else write the whole path of a file", near)
		}
		d.wrongValue(v, remedy, "is %s", shorten(s))
		return false
	}
	return true
}
