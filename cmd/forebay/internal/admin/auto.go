package admin

import "time"

// Auto is what is known of a limit that finds itself.
type Auto struct {
	Min         int     `json:"min"`
	Max         int     `json:"max"`
	DeadlineMS  int64   `json:"deadline_ms"`
	Limit       int     `json:"limit"`            // that it wants now
	Centre      float64 `json:"centre"`           // of the two limits that it compares
	Phase       string  `json:"phase"`            // what it tries: below or above the centre, or resting
	Reason      string  `json:"reason"`           // of the last move of the centre
	Elasticity  float64 `json:"elasticity"`       // per cent more that are done, of one per cent more that may run
	Unsure      float64 `json:"unsure"`           // the standard error of that; 0: nothing was compared yet
	Overload    float64 `json:"overload"`         // requests that came over those that were let in, in the last second
	TookMS      float64 `json:"took_ms"`          // how long requests take, without the line
	Rate        float64 `json:"rate"`             // requests that end in a second while the gate is full; 0: not known
	DeadlineCap int     `json:"deadline_cap"`     // the most that the deadline allows; 0: not known
	SetTo       int     `json:"set_to,omitempty"` // by hand; meanwhile it learns nothing
	Phases      uint64  `json:"phases"`           // that have taught something; it stands still while the gate is not full
	Moves       uint64  `json:"moves"`

	MovesBy map[string]uint64 `json:"moves_by"`   // by reason
	Last    []LimitMove       `json:"last_moves"` // the oldest first
}

// LimitMove is one move of a limit that finds itself. What it tries around that is none.
type LimitMove struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Why  string    `json:"why"`
}
