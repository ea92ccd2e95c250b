package config

import (
	"fmt"
	"path/filepath"

	"example.com/forebay"
)

// Spool is how much is taken in of the answers to requests that keep their slot until the
// upstream is done.
type Spool struct {
	Memory    int64  // bytes, of all answers
	PerAnswer int64  // of them, for one answer
	Directory string // of the files; empty: none
	Disk      int64  // bytes in files, of all answers; 0 without a Directory
}

const (
	minSpool     = 64 << 10 // two pieces
	maxPerAnswer = 1 << 30
	maxSpool     = 1 << 40
)

// spool reads how much is taken in of answers.
func (d *decoder) spool(v value) {
	s := &d.config.Spool
	sizeInto := func(n *int64, v value, most int64) {
		if size, ok := d.size(v, minSpool, most); ok {
			*n = size
		}
	}
	there := d.mapping(v, "spool", []key{
		{"memory", func(v value) { sizeInto(&s.Memory, v, maxSpool) }},
		{"per_answer", func(v value) { sizeInto(&s.PerAnswer, v, maxPerAnswer) }},
		{"directory", func(v value) { d.spoolDirectory(v) }},
		{"disk", func(v value) { sizeInto(&s.Disk, v, maxSpool) }},
	})
	_, named := there["directory"]
	switch at, given := there["disk"]; {
	case given && !named && !d.partial:
		d.wrongAt(at, "disk is given without directory, so there are no files", "set directory as well, such as /var/cache/forebay, or leave disk out")
		s.Disk = 0
	case named && !given:
		s.Disk = DefaultSpoolDisk
	}
}

func (d *decoder) spoolDirectory(v value) {
	p, ok := d.text(v, "the whole path of a directory, such as /var/cache/forebay")
	switch {
	case !ok:
	case !filepath.IsAbs(p):
		d.wrongValue(v, "write the whole path of a directory, such as /var/cache/forebay", "is %s", shorten(p))
	default:
		d.config.Spool.Directory = filepath.Clean(p)
	}
}

// Spools reports whether a gate has answers spooled.
func (c *Config) Spools() bool {
	for _, g := range c.Gates {
		if g.Hold == forebay.HoldUpstreamDone {
			return true
		}
	}
	return false
}

// yaml is the spool as a file says it.
func (s Spool) yaml() string {
	text := fmt.Sprintf("memory: %s, per_answer: %s", sizeText(s.Memory), sizeText(s.PerAnswer))
	if s.Directory != "" {
		text += fmt.Sprintf(", directory: %s, disk: %s", quote(s.Directory), sizeText(s.Disk))
	}
	return text
}

// spoolKeys say how much is taken in of answers.
var spoolKeys = []Key{
	{"spool.memory", "a size, 64KiB to 1024GiB: the memory for answers of gates with hold: upstream_done that their clients have not read yet, of all together", "64MiB",
		"it is a small part of any machine, and holds 64 answers of 1MiB. None of it is taken before an answer comes",
		"Half: half as many slow readers fit; those beyond keep their slots, as with hold: handler, or go to disk. Twice: mind the memory.", "64MiB"},
	{"spool.per_answer", "a size, 64KiB to 1GiB: the memory for one answer", "1MiB",
		"nearly all pages and answers of APIs are smaller; larger ones go on to disk, or keep their slot until all but so much was read",
		"Half: more answers go to disk. Twice: half as many slow readers fill spool.memory.", "1MiB"},
	{"spool.directory", "the whole path of a directory that the program can write to: what has no room in memory goes into files there, which have no name and are gone when the answer or the program ends", "none: memory only",
		"what clients are sent may be secret, and a disk may be slow or full: somebody has to say where. A directory in memory (tmpfs) gains nothing", "", "/var/cache/forebay"},
	{"spool.disk", "a size, 64KiB to 1024GiB: how large the files may be together; only with directory. An answer that says it is larger than per_answer and disk together gets memory alone", "1GiB",
		"it fits on any disk, and is ten slow readers of 100MiB",
		"Half: half as many slow readers of large answers; those beyond keep their slots. Twice: mind the disk. One large answer may have all of it.", "1GiB"},
}
