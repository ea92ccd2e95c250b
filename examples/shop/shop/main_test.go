package shop

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	c, err := parse([]string{"--listen", "127.0.0.1:0", "--data", "d", "--pool", "3", "--quiet", "--until-eof"}, io.Discard)
	if err != nil || c.listen != "127.0.0.1:0" || c.options.Data != "d" || c.options.Pool != 3 || c.options.Progress != nil || !c.untilEOF {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = parse(nil, io.Discard); err != nil || c.options.Pool != 20 || c.options.Progress == nil {
		t.Errorf("without flags: %+v, %v", c, err)
	}
	for _, args := range []string{"--pool 0", "--pol 3", "serve"} {
		var told strings.Builder
		if _, err := parse(strings.Fields(args), &told); err == nil || told.Len() == 0 {
			t.Errorf("%s: %v, %q; want a mistake that is told", args, err, told.String())
		}
	}
	var told strings.Builder
	if _, err := parse([]string{"--help"}, &told); !errors.Is(err, flag.ErrHelp) || !strings.Contains(told.String(), "--listen 127") {
		t.Errorf("--help: %v, %s", err, told.String())
	}
}

func TestRunServesUntilStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, command{options: Options{Data: testData, orders: testOrders}, listen: "127.0.0.1:0"}, in)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	answer, err := http.Get(url + "/api/orders/1")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("status %d", answer.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), command{options: Options{Data: testData, orders: testOrders}, listen: "127.0.0.1:x"}, io.Discard); err == nil {
		t.Error("a wrong address: no error")
	}
}

func TestMainExitCodes(t *testing.T) {
	if got := Main([]string{"--pool", "0", "--quiet"}); got != 2 {
		t.Errorf("wrong arguments: %d, want 2", got)
	}
	if got := Main([]string{"--help"}); got != 0 {
		t.Errorf("--help: %d, want 0", got)
	}
	open(t, 0) // the data is there
	if got := Main([]string{"--quiet", "--data", testData, "--listen", "127.0.0.1:x"}); got != 1 {
		t.Errorf("a wrong address: %d, want 1", got)
	}
}
