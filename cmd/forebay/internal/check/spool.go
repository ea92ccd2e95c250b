package check

import (
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
)

// spool: what is set for it has to fit together, and be used.
func (c *checker) spool() {
	s := c.Spool
	switch {
	case !c.Spools():
		for _, key := range []string{"spool.memory", "spool.per_answer", "spool.directory", "spool.disk"} {
			if c.At(key) != (config.Pos{}) {
				c.find(Warning, "spool_unused", key, "%s is set and no gate has answers spooled; give one hold: upstream_done, or leave spool out", key)
				return
			}
		}
		return
	case s.PerAnswer > s.Memory:
		c.find(Warning, "spool_never", "spool.per_answer", "spool.per_answer is %d bytes, and spool.memory holds %d of all answers: one answer may have all of it, and never has so much; lower the one or raise the other", s.PerAnswer, s.Memory)
	}
	bounds := proxy.SpoolBounds{Directory: s.Directory}
	if err := bounds.Try(); err != nil {
		c.find(Warning, "spool_directory", "spool.directory", "whoever asks here cannot write there, and serve does not start where that is so: %v; make the directory, for the user that runs the program", err)
	}
}
