package cluster

import "strings"

// KeyOf returns the key of a gate's ledger, which is also the name of the gate's
// channel. The gate's name is its hash tag, so everything about a gate lies on one
// node of a Redis Cluster.
func KeyOf(name, gate string) string {
	return braces.Replace(name) + ":{" + braces.Replace(gate) + "}"
}

// ChannelOf returns the channel on which the ledger tells one instance what was lent
// to it.
func ChannelOf(key, instance string) string { return key + ":" + instance }

// braces would move the hash tag.
var braces = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")
