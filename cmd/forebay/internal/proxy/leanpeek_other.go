//go:build !unix

package proxy

const canPeek = false

func isOver(uintptr) bool { return true }

func isSilent(uintptr) bool { return false }
