//go:build race

package cluster_test

// underRace: the race detector takes five times as long, and finds what it can find in a
// few of the long runs. All of them run without it.
const underRace = true
