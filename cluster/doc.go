// Package cluster makes one limit hold over many processes.
package cluster
