//go:build unix

package server

import "syscall"

// descriptors returns how many this program may have, 0 if nobody says. Go has raised
// that to what the system allows.
func descriptors() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > 1<<30 {
		return 0
	}
	return int(l.Cur)
}
