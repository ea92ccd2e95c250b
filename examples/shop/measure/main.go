// Command measure shows on the machine at hand what the shop carries, how it
// collapses under several times that, and how gates of the library in front rescue
// it. The shop, the gates and the callers are three processes.
//
//	go run ./measure --times 5 --duration 12s
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"example.com/forebay/examples/shop/shop"
)

// The first argument with which the program starts itself again.
const (
	asShop  = "as-shop"
	asGates = "as-gates"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asShop:
			os.Exit(shop.Main(os.Args[2:]))
		case asGates:
			os.Exit(serveGates(os.Args[2]))
		}
	}
	m := measurement{out: os.Stdout}
	flag.Float64Var(&m.times, "times", 5, "how many times its capacity the shop is offered")
	flag.DurationVar(&m.duration, "duration", 12*time.Second, "how long calls arrive, in each run")
	flag.Uint64Var(&m.seed, "seed", 1, "what the calls are drawn from")
	flag.StringVar(&m.data, "data", "", "the directory of the shop's data")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := m.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}
