package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Load reads a file. Its error is [Problems] where the content is wrong, and another
// one where there is no content to be had.
func Load(path string) (*Config, error) {
	text, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Read returns the content of a file, or as much of it as shows that it is too long.
// It never waits: what is no file, such as a pipe that nobody writes to, is an error.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDir) != 0 {
		err = fmt.Errorf("%s is no regular file; write the configuration into one, so that a reload can read it again", path)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return text, nil
}

// Parse reads the content of a file; its error is [Problems], each with a place.
// Relative paths in it are meant from the directory of path.
func Parse(path string, text []byte) (*Config, error) {
	d := newDecoder(path)
	d.config.Path, d.config.Hash = path, HashOf(text)
	if s, ok := d.normalise(text); ok {
		if root := d.parse(s); root != nil {
			d.whole(value{Node: root})
		}
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return d.config, nil
}

// HashOf returns what [Config.Hash] is for the content of a file.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

func newDecoder(path string) *decoder {
	return &decoder{file: path, dir: filepath.Dir(path), config: defaults(), kind: configFile}
}

// The defaults of what is not a matter of one gate. docs/config.md says why each.
const (
	DefaultListen           = "127.0.0.1:8080" // of Listen.Address
	DefaultAdmin            = "127.0.0.1:8081" // of Admin.Address
	DefaultDrainTimeout     = 30 * time.Second // of Config.DrainTimeout
	DefaultReadHeader       = 5 * time.Second  // of Timeouts.ReadHeader
	DefaultIdle             = 75 * time.Second // of Timeouts.Idle
	DefaultWrite            = 30 * time.Second // of Timeouts.Write
	DefaultUpstreamResponse = 30 * time.Second // of Timeouts.UpstreamResponse
	DefaultStillRunning     = 5 * time.Minute  // of Timeouts.StillRunning
	DefaultIPv6Prefix       = 64               // of Caller.IPv6Prefix
	DefaultMaxSize          = 64 << 20         // of Log.MaxSize, for a file
	DefaultKeep             = 5                // of Log.Keep, for a file
	DefaultSpoolDisk        = 1 << 30          // of Spool.Disk, with a directory
)

func defaults() *Config {
	return &Config{
		Listen:       Listen{DefaultListen},
		Admin:        Admin{Address: DefaultAdmin},
		Transport:    "lean",
		Server:       "lean",
		DrainTimeout: DefaultDrainTimeout,
		Timeouts:     Timeouts{DefaultReadHeader, DefaultIdle, DefaultWrite, DefaultUpstreamResponse, DefaultStillRunning},
		Caller:       Caller{"X-Forwarded-For", DefaultIPv6Prefix},
		RequestID:    RequestID{"X-Request-Id", TrustProxies},
		Log:          Log{To: "stderr", Decisions: "refused", RemoteIP: "truncated"},
		Intake:       Intake{64 << 20, 64 << 10, 64 << 20, 2 * time.Second, 1 << 30},
		Spool:        Spool{Memory: 64 << 20, PerAnswer: 1 << 20},
		at:           map[string]Pos{},
	}
}
