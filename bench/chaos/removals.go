//go:build linux

package main

// removals returns every protection that is taken out, once.
func removals() []removal {
	return nil
}
