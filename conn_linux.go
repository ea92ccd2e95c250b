package forebay

import (
	"syscall"
	"unsafe"
)

// socketsTell says that a socket can be asked whether its peer has gone although what
// it sent has not been read.
const socketsTell = true

// hangup asks a socket. Peeking would not do: it shows what was sent before the end.
func hangup(fd uintptr) bool {
	const pollErr, pollHup, pollRdHup = 0x8, 0x10, 0x2000
	p := struct {
		fd              int32
		events, revents int16
	}{int32(fd), pollRdHup, 0}
	var now syscall.Timespec // asks, and does not wait
	n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return int(n) == 1 && p.revents&(pollErr|pollHup|pollRdHup) != 0
}
