package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
)

// certificate is what the data port shows, read from files that may be replaced while
// the program runs. There is always one that works: files that do not fit together, as
// while they are being replaced, leave the one before in force.
type certificate struct {
	server *Server
	every  time.Duration // how often the files are looked at

	now    atomic.Pointer[tls.Certificate]
	looked atomic.Int64 // when, in nanoseconds since the program began

	looking sync.Mutex // guards stamp, and is only tried: who finds it held takes what is there
	stamp   string     // of the files that were tried last
}

// lookEvery is how often the files are looked at. A look is two questions to the file
// system; twice as often helps nobody, and half as often nobody minds.
const lookEvery = time.Second

func newCertificate(s *Server) *certificate {
	c := &certificate{server: s, every: lookEvery}
	c.look()
	return c
}

// get returns the certificate for one client.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if time.Since(c.server.started)-time.Duration(c.looked.Load()) >= c.every && c.looking.TryLock() {
		c.look()
		c.looking.Unlock()
	}
	if now := c.now.Load(); now != nil {
		return now, nil
	}
	return nil, errors.New("server: there is no certificate")
}

// look takes what is in the files, if that is another pair than before and one.
func (c *certificate) look() {
	c.looked.Store(int64(time.Since(c.server.started)))
	t := c.server.Config().TLS
	stamp := stampOf(t)
	if stamp == c.stamp {
		return
	}
	c.stamp = stamp
	pair, err := t.Load()
	if err != nil {
		c.server.logger().Error("the certificate cannot be used; the one before stays in force", "file", t.CertFile, "error", err.Error())
		return
	}
	c.now.Store(&pair)
	c.server.logger().Info("a certificate is in force", "file", t.CertFile, "until", pair.Leaf.NotAfter)
}

// stampOf is another text when the files are others.
func stampOf(t *config.TLS) (stamp string) {
	cert, key := t.Files()
	for _, p := range []string{cert, key} {
		if info, err := os.Stat(p); err == nil {
			stamp += fmt.Sprintf("%s %d %v;", p, info.Size(), info.ModTime().UnixNano())
		} else {
			stamp += p + " is away;"
		}
	}
	return stamp
}
