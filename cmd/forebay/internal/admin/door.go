package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// door decides who is served.
type door struct {
	token       [sha256.Size]byte // hashed, so that the comparison does not tell its length
	hasToken    bool
	loopback    bool
	crossOrigin *http.CrossOriginProtection
}

func newDoor(o Options) *door {
	return &door{
		token: sha256.Sum256([]byte(o.Token)), hasToken: o.Token != "",
		loopback: o.Loopback, crossOrigin: http.NewCrossOriginProtection(),
	}
}

// refuse returns the status and the reason for which a request is not served, 0 if
// it is.
func (d *door) refuse(r *http.Request, open bool) (status int, why string) {
	if !d.hasToken && d.loopback && !thisMachine(r.Host) {
		return http.StatusForbidden, fmt.Sprintf("the host %q is not this machine, and no token is set; use localhost, or set admin.token_file", r.Host)
	}
	if d.crossOrigin.Check(r) != nil {
		return http.StatusForbidden, "a page of another origin may not change anything here"
	}
	switch {
	case open, d.knows(r):
		return 0, ""
	case d.hasToken:
		return http.StatusUnauthorized, "the token is missing or wrong; send Authorization: Bearer and the content of admin.token_file"
	}
	return http.StatusForbidden, "other machines can reach this port and no token is set; set admin.token_file, or listen on 127.0.0.1"
}

// knows reports whether the caller may see everything.
func (d *door) knows(r *http.Request) bool {
	if !d.hasToken {
		return d.loopback
	}
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(sent)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], d.token[:]) == 1
}

// thisMachine reports whether a Host header names this machine in a way that nobody
// else's name server can: localhost or a loopback address, with any port. A browser
// always sends a Host; probes that speak HTTP/1.0 send none and are served.
func thisMachine(host string) bool {
	if host == "" {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback() && addr.Zone() == ""
}
