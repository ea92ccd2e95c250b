package telemetry

import (
	"strings"
	"testing"
)

func TestAnonymise(t *testing.T) {
	for _, c := range []struct{ mode, ip, want string }{
		{"truncated", "192.0.2.77", "192.0.2.0"},
		{"truncated", "::ffff:192.0.2.77", "192.0.2.0"},
		{"truncated", "192.0.2.77:4711", "192.0.2.0"},
		{"truncated", "2001:db8:1:2:3:4:5:6", "2001:db8:1::"},
		{"truncated", "[2001:db8:1:2::6]:443", "2001:db8:1::"},
		{"truncated", "fe80::1%eth0", "fe80::"},
		{"truncated", "::1", "::"},
		{"truncated", "@", ""},
		{"truncated", "", ""},
		{"truncated", "192.0.2.77\nforged", ""},
		{"full", "192.0.2.77", "192.0.2.77"},
		{"full", "fe80::1%eth0", "fe80::1"},
		{"full", "not an address", ""},
		{"off", "192.0.2.77", ""},
		{"hashed", "not an address", ""},
		{"unheard of", "192.0.2.77", ""},
	} {
		if got := Anonymise(c.mode, c.ip, nil); got != c.want {
			t.Errorf("Anonymise(%s, %q) = %q, want %q", c.mode, c.ip, got, c.want)
		}
	}
}

func TestHashedAddressesCannotBeLookedUp(t *testing.T) {
	one, two := []byte("salt one"), []byte("salt two")
	a := Anonymise("hashed", "192.0.2.77", one)
	if len(a) != 16 || strings.Contains(a, "192") {
		t.Errorf("hashed = %q, want 16 digits", a)
	}
	if b := Anonymise("hashed", "::ffff:192.0.2.77", one); b != a {
		t.Errorf("the same caller is %q and %q", a, b)
	}
	if Anonymise("hashed", "192.0.2.78", one) == a || Anonymise("hashed", "192.0.2.77", two) == a {
		t.Error("another caller, or another key, gives the same")
	}
	first, _ := open(t, Options{RemoteIP: RemoteIPHashed})
	second, _ := open(t, Options{RemoteIP: RemoteIPHashed})
	if first.Anonymise("192.0.2.77") == second.Anonymise("192.0.2.77") {
		t.Error("two starts have the same key")
	}
}
