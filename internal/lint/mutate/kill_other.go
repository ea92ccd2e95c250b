//go:build !unix

package main

import "os/exec"

// killTogether does nothing here: the test binary ends by its own -timeout.
func killTogether(*exec.Cmd) {}
