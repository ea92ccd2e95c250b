package main

import (
	"syscall"
	"unsafe"
)

// canStayAwake: there is a way to run only when nobody else wants to.
const canStayAwake = true

// giveWay makes this thread one that runs only while its processor has nothing else to
// do.
func giveWay() error {
	const idle = 5 // SCHED_IDLE
	var param struct{ priority int32 }
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, idle, uintptr(unsafe.Pointer(&param))); e != 0 {
		return e
	}
	return nil
}
