package server

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
)

// Names of the sockets that a service manager may hand over (FileDescriptorName= of
// a systemd socket unit). Without names the first is for requests, the second for
// the admin port.
const (
	socketListen = "listen"
	socketAdmin  = "admin"
)

// listeners opens what the configuration says, or takes what the service manager has
// opened already.
func listeners(listen, admin string) (data, control net.Listener, err error) {
	data, control, err = inherited()
	if err != nil {
		return nil, nil, err
	}
	if data == nil {
		data, err = openListener("listen", listen)
	}
	if err == nil && control == nil {
		control, err = openListener("admin", admin)
	}
	if err != nil {
		closeAll(data, control)
		return nil, nil, err
	}
	return data, control, nil
}

func closeAll(all ...net.Listener) {
	for _, l := range all {
		if l != nil {
			//mutate:equivalent the program ends
			_ = l.Close() // nothing was accepted
		}
	}
}

// inherited returns the sockets of the service manager; nil where it gave none.
func inherited() (data, control net.Listener, err error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, nil, fmt.Errorf("sockets of the service manager: %w", err)
	}
	var rest []net.Listener
	for _, name := range slices.Sorted(maps.Keys(named)) {
		for _, l := range named[name] {
			switch {
			case name == socketAdmin && control == nil:
				control = l
			case name == socketListen && data == nil:
				data = l
			default:
				rest = append(rest, l)
			}
		}
	}
	for _, role := range []*net.Listener{&data, &control} {
		if *role == nil && len(rest) > 0 {
			*role, rest = rest[0], rest[1:]
		}
	}
	closeAll(rest...)
	return data, control, nil
}

// openListener opens one address. The socket of a program that is gone is replaced,
// that of one that still answers is not.
func openListener(key, address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		l, err := net.Listen("tcp", address)
		return l, explain(key, address, err)
	}
	if err := removeDead(path); err != nil {
		return nil, explain(key, address, err)
	}
	l, err := net.Listen("unix", path)
	return l, explain(key, address, err)
}

func removeDead(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("there is a file of that name that is no socket")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		//mutate:equivalent the program ends
		_ = conn.Close()
		return syscall.EADDRINUSE
	case errors.Is(err, syscall.ECONNREFUSED): // nobody listens any more
		return os.Remove(path)
	}
	return syscall.EADDRINUSE // somebody does, and is too busy to say so
}

// explain says what to do about an address that cannot be had.
func explain(key, address string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s %s: another program listens there; stop it, or choose another address", key, address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s %s: not permitted; choose a port from 1024 up, or give the program CAP_NET_BIND_SERVICE", key, address)
	}
	return fmt.Errorf("%s %s: %w", key, address, err)
}

// isLoopback reports whether nobody from another machine can reach a listener.
func isLoopback(l net.Listener) bool {
	if l.Addr().Network() == "unix" {
		return true
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	return err == nil && addr.Addr().IsLoopback()
}
