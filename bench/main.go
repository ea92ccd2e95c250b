// Command bench compares forebay with what else a Go program could use, in one
// process and in interleaved rounds, and the program with other proxies. It writes
// docs/performance.md, docs/cluster-performance.md, docs/proxy-performance.md and
// docs/soak.md.
//
//	go run . gate              # the gate in one process, about five minutes
//	go run . cluster           # one limit over many instances, on a Redis of its own
//	go run . proxy             # the program beside nginx, HAProxy and Caddy
//	go run . soak              # the program under loads that leave nothing behind
//	go run . gate --quick      # one short round of it, for CI
//	go run . gate --strict     # exit status 1 if a target is missed
//	go run . gate --only wire  # some sections; writes no file unless told to
//
// It is the only module of this repository that imports the peers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench: error:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name what to run: gate, cluster, proxy or soak")
	}
	switch args[0] {
	case "gate":
		return gateSuite.run(args[1:], os.Stdout)
	case "cluster":
		return clusterSuite.run(args[1:], os.Stdout)
	case "proxy":
		return proxySuite.run(args[1:], os.Stdout)
	case awakeCommand:
		return stayAwake(os.Stdin)
	case "soak":
		return soakSuite.run(args[1:], os.Stdout)
	case clientCommand:
		return serveClient(os.Stdin, os.Stdout)
	case upstreamCommand:
		return serveUpstream(args[1])
	}
	return fmt.Errorf("%q is nothing to run; there is: gate, cluster, proxy, soak", args[0])
}
