// Command forebay puts an overload gate in front of an HTTP backend of any language.
package main

import (
	"os"

	"example.com/forebay/cmd/forebay/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
