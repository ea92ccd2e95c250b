package shop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `shop: orders and reports over SQLite, a backend to put Forebay in front of

  shop --listen 127.0.0.1:8000

It prints "listening on http://ADDRESS" to standard output when it is ready, and how
the making of its data goes to standard error.

`

// drainTime is how long requests that run may take to finish once the shop is told
// to stop.
const drainTime = 5 * time.Second

// command is what the command line says.
type command struct {
	options  Options
	listen   string
	untilEOF bool
}

// Main runs the shop until it is interrupted, and returns the exit code: 0, 1 when
// it failed, 2 when the arguments are wrong. A program that contains the shop can
// start itself again with arguments that lead here.
func Main(args []string) int {
	c, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // the flag set has said why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.untilEOF {
		go func() { // ends with the input or with the process, whichever is first
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (c command, err error) {
	quiet := false
	f := flag.NewFlagSet("shop", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() { fmt.Fprint(errs, usage); f.PrintDefaults() }
	f.StringVar(&c.listen, "listen", "127.0.0.1:8000", "the `address` to listen on; port 0 takes a free one")
	f.StringVar(&c.options.Data, "data", "", "the `directory` of the database (default "+DefaultData()+")")
	f.IntVar(&c.options.Pool, "pool", DefaultPool, "how many `connections` to the database are open at most")
	f.DurationVar(&c.options.Hold, "hold", 0, "how much longer each query keeps its connection, on `average`")
	f.BoolVar(&quiet, "quiet", false, "do not tell how the making of the data goes")
	f.BoolVar(&c.untilEOF, "until-eof", false, "stop when standard input ends, so that no parent that dies leaves a shop behind")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	wrong := ""
	switch {
	case f.NArg() > 0:
		wrong = fmt.Sprintf("shop: unknown argument %q; there are only flags, see --help", f.Arg(0))
	case c.options.Pool < 1:
		wrong = fmt.Sprintf("shop: --pool is %d; it must be at least 1", c.options.Pool)
	}
	if wrong != "" {
		fmt.Fprintln(errs, wrong)
		return c, errors.New(wrong)
	}
	if !quiet {
		c.options.Progress = errs
	}
	return c, nil
}

// run serves until ctx ends.
func run(ctx context.Context, c command, out io.Writer) error {
	s, err := New(ctx, c.options)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	select {
	case err := <-served:
		return fmt.Errorf("shop: %w", err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if h.Shutdown(late) != nil {
		_ = h.Close() // whoever has not finished by now is cut off
	}
	return nil
}
