//go:build unix

package proxy

import "syscall"

// canPeek says that a socket can be asked whether something lies on it.
const canPeek = true

// isOver reports whether a socket has ended, or has an error.
func isOver(fd uintptr) bool {
	var one [1]byte
	n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == nil && n == 0 || err != nil && err != syscall.EAGAIN && err != syscall.EWOULDBLOCK
}

// isSilent reports whether a socket is open and nothing came on it.
func isSilent(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
}
