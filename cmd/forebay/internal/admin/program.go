package admin

import (
	"context"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// Program is what is administered. All of it is called by many at once.
type Program interface {
	// Gates returns the gates in force, in the order of the configuration.
	Gates() []*forebay.Gate
	// Reload reads the configuration again. An error means that nothing has changed;
	// one mistake is one line of it.
	Reload(ctx context.Context) error
	// Drain stops admitting, without exit. It does not wait.
	Drain()
	// Resume ends a drain.
	Resume()
	// Draining reports whether the program admits nobody, on the way out included.
	Draining() bool
	// Away returns why a gate of a cluster has to do without its store, "" if it need
	// not, or is of none.
	Away(gate string) (why string)
	// Auto says what is known of a gate's limit that finds itself; nil: it does not.
	Auto(*forebay.Gate) *Auto
	// Spool says what is held of answers.
	Spool() proxy.SpoolStats
	// Info says what runs.
	Info() Info
	// Intake returns what is held and thrown away of requests that do not run.
	Intake() forebay.IntakeStats
	// SetOverride puts a limit in force in place of the configured one, 0 to close
	// the gate: for d, or if d is 0 until it is cleared or the configuration is
	// reloaded. One that is in force already is replaced. That of a gate in a cluster is
	// for all its programs.
	SetOverride(gate string, n int, d time.Duration, why Reason) error
	// ClearOverride puts the configured limit in force again.
	ClearOverride(gate string, why Reason) error
	// Overrides returns those in force.
	Overrides() []Override
	// Stories are what became of calls.
	Stories() *story.Book
	// Seen is what is known of the gates, and wrong with them.
	Seen() *verdict.Recorder
}

// Info says what runs, and from which configuration.
type Info struct {
	Version      string    `json:"version"`
	Started      time.Time `json:"started"`
	ConfigPath   string    `json:"config_path,omitempty"` // empty: flags alone
	ConfigHash   string    `json:"config_hash,omitempty"` // of what is in force
	LastReload   time.Time `json:"last_reload,omitzero"`
	LastReloadOK bool      `json:"last_reload_ok"`
	Problems     []string  `json:"problems,omitempty"` // of the last reload, if it failed
}

// Override is a limit that somebody set by hand.
type Override struct {
	Gate        string    `json:"gate"`
	MaxInFlight int       `json:"max_in_flight"`  // 0: closed
	Was         int       `json:"was"`            // the limit before, and after
	Auto        bool      `json:"auto,omitempty"` // afterwards it finds itself again, from Was on
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until,omitzero"` // zero: until cleared or reloaded
	Why         string    `json:"why,omitempty"`
	By          string    `json:"by,omitempty"` // who says to have set it, or the address that did
}

// Reason is why somebody changes something, and who: as they say themselves, else the
// address that it came from. Whoever has the admin port may say anything here.
type Reason struct{ Why, By string }
