//go:build !unix

package redistest

import "os"

// There are no such signals here, and no Redis either: tests skip before.
var freeze, thaw, terminate = os.Kill, os.Kill, os.Kill
