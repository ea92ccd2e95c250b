// Package goredisstore keeps the ledgers of clustered gates in Redis, through
// go-redis.
package goredisstore
