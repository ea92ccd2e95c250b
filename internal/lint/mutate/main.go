// Command mutate shows that every release site of the library, or of the program, is
// protected by a test. It finds the calls that give something back or hand something
// on, removes each in turn, and runs the tests of the part: some test must fail.
//
//	go run ./internal/lint/mutate
//	go run ./internal/lint/mutate -part program
//	go run ./internal/lint/mutate -list
//	go run ./internal/lint/mutate -only gate.go:120
//
// A mutant never touches the working tree: the tests run with an overlay. A
// test that hangs, or that eats the memory it is allowed, has caught its mutant
// too. A site whose removal changes nothing that anybody can see is marked on
// the line above, and listed with the reason:
//
//	//mutate:equivalent the caller wakes the line a second time below
//
// It exits 0 when every mutant is caught, 1 when one survives or cannot be
// built, 2 when it cannot do its work.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	var cfg config
	var name, dirs, names string
	flag.StringVar(&name, "part", "library", "whose code is mutated: library or program")
	flag.StringVar(&dirs, "dirs", "", "directories of the part that are mutated, instead of all that have release sites")
	flag.StringVar(&names, "names", "", "callees that make a release site, instead of the part's table in parts.go")
	flag.StringVar(&cfg.only, "only", "", "only the mutants whose file:line starts with this")
	flag.BoolVar(&cfg.list, "list", false, "list the mutants and run nothing")
	flag.BoolVar(&cfg.flips, "flips", false, "also flip each comparison and each && and ||")
	flag.BoolVar(&cfg.short, "short", true, "run the tests with -short")
	flag.IntVar(&cfg.parallel, "parallel", 2, "mutants at a time")
	flag.IntVar(&cfg.memoryMB, "memory", 6144, "address space of a mutant's processes in MB, on Linux; 0 for no bound")
	flag.DurationVar(&cfg.timeout, "timeout", 0, "after which the tests of a package count as hanging; 0 for four times what they all take without a mutant, between 10s and 1m, and at least twice what the slowest takes")
	flag.Parse()
	p, ok := parts[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "mutate: error: there is no part %q; give library or program\n", name)
		os.Exit(2)
	}
	cfg.part = p
	if dirs != "" {
		cfg.dirs = strings.Split(dirs, ",")
	}
	if names != "" {
		cfg.names = nameTable(names)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, p.root, cfg, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "mutate: error: %v\n", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}
