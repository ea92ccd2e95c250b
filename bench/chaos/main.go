//go:build linux

// Command chaos puts a limit that several processes share through Redis to the test:
// real processes, real servers, and everything that goes wrong with them. It counts how
// many hold a slot at the same time, for forebay and for what others use, and writes
// docs/cluster-faults.md.
//
//	go run ./chaos                # everything
//	go run ./chaos --short        # what make test runs
//	go run ./chaos --only REGEXP  # some scenarios; writes no file unless told to
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		if err := runWorker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker: error:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "chaos: error:", err)
		}
		os.Exit(1)
	}
}
