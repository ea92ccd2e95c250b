package server

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canWait says that waiting is known.
const canWait = true

// waiting waits until something has come on a socket, and returns how many bytes may be
// taken from it without waiting; 0: it has ended.
func waiting(socket syscall.RawConn) (n int64, err error) {
	gone := socket.Read(func(fd uintptr) bool {
		var size uint32
		size, err = unix.IoctlGetUint32(int(fd), unix.SIOCINQ)
		if n = int64(size); n > 0 || err != nil {
			return true
		}
		// Whether there is nothing yet, or nothing any more, shows only in reading.
		var one [1]byte
		got, _, failed := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		n, err = max(0, int64(got)), failed
		return err != unix.EAGAIN
	})
	if gone != nil {
		return 0, gone
	}
	return n, err
}
