package forebay

import "time"

// LookFor makes answers wait that long for the end of a small body, so that a test need
// not depend on how fast its machine is. It comes before the first request.
func (in *Intake) LookFor(d time.Duration) { in.look = d }
