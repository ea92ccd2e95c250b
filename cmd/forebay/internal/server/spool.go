package server

import (
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
)

// spoolBounds returns how much of answers is taken in, nil if no gate asks for it, or
// what is wrong with where files are to go.
func spoolBounds(cfg *config.Config) (*proxy.SpoolBounds, error) {
	if !cfg.Spools() {
		return nil, nil
	}
	s := cfg.Spool
	b := &proxy.SpoolBounds{Memory: s.Memory, PerAnswer: s.PerAnswer, Directory: s.Directory, Disk: s.Disk}
	if err := b.Try(); err != nil {
		at := cfg.At("spool.directory")
		return nil, config.Problems{{
			File: cfg.Path, Line: at.Line, Col: at.Col, What: "spool.directory cannot be used: " + err.Error(),
			Remedy: "make the directory, for the user that runs this program",
		}}
	}
	return b, nil
}

// newSpool returns the spool of all proxies.
func (s *Server) newSpool() *proxy.Spool {
	return proxy.NewSpool(func(err error) {
		s.log.Paced().Warn("a file of the spool failed", "error", err.Error())
	})
}

// Spool says what is held of answers.
func (s *Server) Spool() proxy.SpoolStats { return s.spool.Stats() }
