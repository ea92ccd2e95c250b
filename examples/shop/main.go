// Command shop is the sample backend: orders and reports over SQLite. It knows
// nothing of Forebay and has no protection of its own.
//
//	go run . --listen 127.0.0.1:8000
package main

import (
	"os"

	"example.com/forebay/examples/shop/shop"
)

func main() { os.Exit(shop.Main(os.Args[1:])) }
