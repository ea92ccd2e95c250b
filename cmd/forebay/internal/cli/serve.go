package cli

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/server"
)

type serveCmd struct {
	Config      string `short:"c" help:"The configuration file. Without one the flags below make a first gate."`
	Upstream    string `help:"The URL of what stands behind: http://127.0.0.1:8000, or unix:/run/app.sock."`
	Listen      string `help:"The address at which requests come in. Default: 127.0.0.1:8080."`
	Admin       string `help:"The address at which operators look. Default: 127.0.0.1:8081."`
	MaxInFlight string `help:"How many requests run at once, or auto for a limit that finds itself. A pool of 20 connections carries 12 to 16."`
	MaxWait     string `help:"How long a request waits for a slot: 100ms. Default: it is refused at once."`
	MaxWaiting  string `help:"How many wait at most. Default: twice max-in-flight."`
}

// Help is shown below the flags.
func (serveCmd) Help() string {
	return `Example, with no file:
  forebay serve --upstream http://127.0.0.1:8000 --listen :8080 --max-in-flight 16 --max-wait 100ms

Example, with one:
  forebay check forebay.yaml && forebay serve -c forebay.yaml

A changed file, SIGHUP and POST /reload on the admin port reload it. SIGTERM refuses
new requests, lets the running ones finish and ends with 0, or with 1 when
drain_timeout ran out.`
}

// Run serves until it is told to stop.
func (c serveCmd) Run(s streams) error {
	load, err := c.source()
	if err != nil {
		return err
	}
	// The container's memory limit is the garbage collector's too. Without one, or with
	// GOMEMLIMIT set, nothing happens, and an error means no more than that.
	_, _ = memlimit.Set(memlimit.WithLogger(slog.New(slog.DiscardHandler)))
	// Whoever reads standard error may go away; that costs lines, not the program.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	log.SetOutput(io.Discard) // net/http has things to say there, with what upstreams sent
	srv, err := server.New(server.Options{Load: load, Version: version()})
	if err != nil {
		return c.explain(err)
	}
	code, err := srv.Run(context.Background())
	if err != nil {
		return err
	}
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// source returns how the configuration is read, now and for reloads.
func (c serveCmd) source() (func() (*config.Config, error), error) {
	flags := config.Flags{
		Listen: c.Listen, Admin: c.Admin, Upstream: c.Upstream,
		MaxInFlight: c.MaxInFlight, MaxWait: c.MaxWait, MaxWaiting: c.MaxWaiting,
	}
	switch {
	case c.Config == "" && flags == (config.Flags{}):
		return nil, hinted{errors.New("what to stand in front of?"),
			"forebay serve --upstream http://127.0.0.1:8000 --max-in-flight 16 --max-wait 100ms, or -c FILE"}
	case c.Config != "" && flags != (config.Flags{}):
		return nil, hinted{errors.New("both a file and flags that stand for one"), "put the values into the file, or leave -c out"}
	case c.Config != "":
		return func() (*config.Config, error) { return config.Load(c.Config) }, nil
	}
	return func() (*config.Config, error) { return config.FromFlags(flags) }, nil
}

func (c serveCmd) explain(err error) error {
	var problems config.Problems
	if errors.As(err, &problems) && c.Config != "" {
		return hinted{err, "forebay check " + c.Config + " says the same and more, without serving"}
	}
	return err
}
