//go:build !linux

package forebay

// socketsTell says that a socket can be asked whether its peer has gone although what
// it sent has not been read. Elsewhere it shows once the request is read.
const socketsTell = false

func hangup(uintptr) bool { return false }
