package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/forebay/cmd/forebay/internal/demo"
	"example.com/forebay/examples/shop/shop"
)

type demoCmd struct {
	Times  float64       `default:"5" help:"Load of the burst, in capacities of the shop. Default: ${default}."`
	For    time.Duration `default:"10s" help:"Length of a burst. Default: ${default}."`
	Data   string        `help:"The directory in which the shop keeps its data. Default: the user's cache."`
	Once   bool          `help:"End after the comparison instead of staying to be looked at."`
	AsShop bool          `hidden:"" help:"Be the shop."`
	Args   []string      `arg:"" optional:"" hidden:"" passthrough:""`
}

// Help is shown below the flags.
func (demoCmd) Help() string {
	return `Starts a sample shop, puts forebay before it, and sends the same burst without and
with it. Ends with 1 if the gate made no difference.

Example:
  forebay demo --once`
}

// Run shows the demo.
func (c demoCmd) Run(s streams) error {
	if c.AsShop {
		if code := shop.Main(c.shopArgs()); code != exitOK {
			return exit(code)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	seen, err := demo.Run(ctx, demo.Options{
		Out: s.out, Progress: isTerminal(s.out), Data: c.Data, Times: c.Times, For: c.For, Stay: !c.Once,
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case seen.With.Class("orders").Share()-seen.Without.Class("orders").Share() < leastGain:
		return exit(exitNo)
	}
	return nil
}

// isTerminal reports whether somebody watches, so that a line may be written over.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// leastGain is how many more of the orders must be answered in time with the gate, for
// the demo to have shown something. It shows nine in ten.
const leastGain = 0.5

func (c demoCmd) shopArgs() []string {
	if len(c.Args) > 0 && c.Args[0] == "--" {
		return c.Args[1:]
	}
	return c.Args
}
