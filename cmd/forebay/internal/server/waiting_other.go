//go:build !linux

package server

import (
	"errors"
	"syscall"
)

const canWait = false

// waiting is not known here.
func waiting(syscall.RawConn) (int64, error) { return 0, errors.ErrUnsupported }
