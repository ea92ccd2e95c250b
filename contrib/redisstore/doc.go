// Package redisstore keeps the ledgers of clustered gates in Redis, through rueidis.
package redisstore
