// Package redisledger is what the stores on Redis have in common, whatever client
// library they go through: how the ledger's script is run, what a refusal of the
// server means, when a subscription is made anew, and what to look at before anything
// is trusted to a server.
package redisledger
