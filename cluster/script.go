package cluster

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

//go:embed ledger.lua
var script string

// Script returns the ledger as a store runs it: with the key of the ledger as its only
// key and what [Request.Args] returns as arguments. The answer is one string, for
// [ParseReply]. sha1 is what EVALSHA calls it.
func Script() (source, sha string) {
	sum := sha1.Sum([]byte(script))
	return script, hex.EncodeToString(sum[:])
}
