package telemetry

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

// The ways in which an address can be shown; see [Anonymise].
const (
	RemoteIPTruncated = "truncated" // without its last part; the default
	RemoteIPFull      = "full"      // as it is
	RemoteIPHashed    = "hashed"    // so that one caller can be followed until the next start
	RemoteIPOff       = "off"       // not at all
)

const (
	// A /24 is what an office or a small provider's pool has: enough to see where a
	// storm comes from, and 256 candidates for who it was. An IPv6 customer is given
	// a /48 to a /64, so only the /48 hides one among others at most providers.
	keptIPv4 = 24
	keptIPv6 = 48
)

// Anonymise returns how an address is shown: truncated (192.0.2.0, 2001:db8:1::),
// full, hashed (16 hex digits, keyed with salt) or off (empty). An unknown mode is
// taken as off. An IPv4 address in IPv6 clothes is an IPv4 address; ports and zones
// are dropped. What is no address (the peer of a unix socket) is never shown: the
// result is empty.
func Anonymise(mode string, ip string, salt []byte) string {
	if mode == RemoteIPOff {
		return ""
	}
	addr, ok := parseAddr(ip)
	if !ok {
		return ""
	}
	switch mode {
	case RemoteIPFull:
		return addr.String()
	case RemoteIPHashed:
		sum := hmac.New(sha256.New, salt)
		sum.Write(addr.AsSlice())
		return hex.EncodeToString(sum.Sum(nil)[:8])
	case RemoteIPTruncated:
		kept := keptIPv6
		if addr.Is4() {
			kept = keptIPv4
		}
		prefix, _ := addr.Prefix(kept) // both lengths fit
		return prefix.Addr().String()
	}
	return ""
}

func parseAddr(s string) (addr netip.Addr, ok bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
