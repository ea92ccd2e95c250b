//go:build !linux

package main

import "errors"

const canStayAwake = false

func giveWay() error { return errors.ErrUnsupported }
