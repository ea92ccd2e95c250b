package redisledger

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/forebay/cluster"
)

// fake is a client library whose server answers as answer says.
type fake struct {
	answer func(command []string) (any, error)
	sent   []string // the first words
	over   int      // connections taken
	subs   chan *fakeSub
}

type fakeSub struct {
	ctx   context.Context
	ready func()
	heard func(cluster.Message)
	end   chan error
}

func (f *fake) Where() string { return "here:6379" }

func (f *fake) Do(_ context.Context, _ string, command []string) (any, error) {
	f.sent = append(f.sent, command[0])
	return f.answer(command)
}

func (f *fake) Over(ctx context.Context, key string, do func(Do) error) error {
	f.over++
	return do(func(ctx context.Context, command []string) (any, error) { return f.Do(ctx, key, command) })
}

func (f *fake) Subscribe(ctx context.Context, _ []string, ready func(), heard func(cluster.Message)) error {
	s := &fakeSub{ctx, ready, heard, make(chan error, 1)}
	f.subs <- s
	select {
	case err := <-s.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reply is an answer of the script in an epoch, as it is packed: a list of small
// numbers, of which the first is the epoch, and an empty list at the end.
func reply(epoch byte) string {
	for n := byte(16); n < 100; n++ {
		packed := append([]byte{0xdc, 0, n, epoch}, make([]byte, n-2)...)
		packed = append(packed, 0x90)
		if _, err := cluster.ParseReply(string(packed)); err == nil {
			return string(packed)
		}
	}
	panic("the script's answer has another form now")
}

func request() *cluster.Request {
	return &cluster.Request{Key: "forebay:{g}", Instance: "a", Host: "h"}
}

func TestExchange(t *testing.T) {
	known := false
	f := &fake{answer: func(c []string) (any, error) {
		switch {
		case c[0] == "EVAL" && len(c) == 4: // who asks the server
			return int64(1), nil
		case c[0] == "EVALSHA" && !known:
			return nil, Refused("NOSCRIPT No matching script.")
		case c[0] == "EVAL":
			known = true
		}
		return reply(7), nil
	}}
	c := New("somestore", f)
	for range 2 {
		if r, err := c.Exchange(t.Context(), request()); err != nil || r.Epoch != 7 {
			t.Fatalf("Exchange = %v, %v", r, err)
		}
	}
	if want := []string{"EVAL", "EVALSHA", "EVAL", "EVALSHA"}; !slices.Equal(f.sent, want) || c.Reloads() != 1 || f.over != 0 {
		t.Errorf("sent %v, %d reloads, %d connections taken; want %v, 1, 0", f.sent, c.Reloads(), f.over, want)
	}
}

// TestDamaged has what is kept forgotten where the script cannot reckon with it, whatever
// the server says around that; and leaves it alone where a command was refused.
func TestDamaged(t *testing.T) {
	for text, forgets := range map[string]bool{
		"ERR user_script:381: attempt to perform arithmetic on field '?' (a table value) script: 6e, on @user_script:381.":        true,
		"ERR Error running script (call to f_6e): @user_script:381: user_script:381: attempt to compare nil with number":          true,
		"ERR user_script:172: forebay: what is kept in k is damaged; it counts as lost script: 6e, on @user_script:172.":          false,
		"NOPERM this user has no permissions to run the 'hget' command script: 6e, on @user_script:98.":                           false,
		"ERR Error running script (call to f_6e): @user_script:98: @user_script: 98: Write commands are not allowed after random": false,
	} {
		damaged := true
		f := &fake{}
		f.answer = func(c []string) (any, error) {
			switch {
			case len(c) == 4:
				return int64(1), nil
			case c[0] == "SET":
				damaged = false
				return "OK", nil
			case damaged && !(strings.Contains(text, spoilt) && len(f.sent) > 2):
				return nil, Refused(text)
			}
			return reply(7), nil
		}
		c := New("somestore", f)
		_, err := c.Exchange(t.Context(), request())
		want := []string{"EVAL", "EVALSHA", "SET", "EVALSHA"}
		recovers := forgets || strings.Contains(text, spoilt)
		switch {
		case !recovers:
			want = want[:2]
		case !forgets:
			want = slices.Delete(want, 2, 3)
		}
		if !slices.Equal(f.sent, want) || (err == nil) != recovers {
			t.Errorf("%s: sent %v, %v; want %v", text, f.sent, err, want)
		}
	}
}

// TestIdentityOfTheConnection is about servers whose scripts cannot ask who they run
// on: it is asked before, over the same connection, each time.
func TestIdentityOfTheConnection(t *testing.T) {
	var told []string
	id, refuse := "one", false
	f := &fake{answer: func(c []string) (any, error) {
		switch {
		case c[0] == "EVAL" && len(c) == 4:
			return int64(0), nil
		case c[0] == "INFO" && refuse:
			return nil, Refused("NOPERM no permissions")
		case c[0] == "INFO":
			return "# Server\r\nredis_version:7.0.15\r\nrun_id:" + id + "\r\n", nil
		}
		told = append(told, c[len(c)-1])
		return reply(1), nil
	}}
	c := New("somestore", f)
	for _, id = range []string{"one", "two"} {
		if _, err := c.Exchange(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	refuse = true
	if _, err := c.Exchange(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	nothing := request().Args("")[0]
	ends := []string{"one", "two", nothing[len(nothing)-1:]}
	for i, text := range told {
		if !strings.HasSuffix(text, ends[i]) {
			t.Errorf("exchange %d told the script %q, want the identity %q at its end", i, text, ends[i])
		}
	}
	if len(told) != 3 || f.over != 3 {
		t.Errorf("%d exchanges over %d connections, want 3 over 3", len(told), f.over)
	}
}

// TestWhoAsksAgain shows that after a failure nothing is taken for granted of the
// server that answers next.
func TestWhoAsksAgain(t *testing.T) {
	fail, scriptsMay := false, int64(1)
	f := &fake{answer: func(c []string) (any, error) {
		switch {
		case fail:
			return nil, io.EOF
		case c[0] == "EVAL" && len(c) == 4:
			return scriptsMay, nil
		}
		return reply(1), nil
	}}
	c := New("somestore", f)
	if _, err := c.Exchange(t.Context(), request()); err != nil || f.over != 0 {
		t.Fatalf("%v, %d connections taken", err, f.over)
	}
	fail = true
	if _, err := c.Exchange(t.Context(), request()); !errors.Is(err, io.EOF) || errors.Is(err, cluster.ErrSetup) {
		t.Fatalf("a lost connection: %v", err)
	}
	fail, scriptsMay = false, 0
	if _, err := c.Exchange(t.Context(), request()); err != nil || f.over != 1 {
		t.Errorf("%v, %d connections taken, want one", err, f.over)
	}
}

func TestErrors(t *testing.T) {
	f := &fake{}
	c := New("somestore", f)
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for _, test := range []struct {
		err   error
		setup bool
		words string
	}{
		{Refused("TRYAGAIN Multiple keys request during rehashing of slot"), false, "on its way"},
		{Refused("MISCONF Redis is configured to save RDB snapshots"), false, "disk"},
		{Refused("MASTERDOWN Link with MASTER is down"), false, "primary"},
		{Refused("LOADING Redis is loading the dataset in memory"), false, "a moment"},
		{Refused("ERR max number of clients reached"), false, "maxclients"},
		{Refused("NOAUTH Authentication required."), true, "password"},
		{Refused("DENIED Redis is running in protected mode"), true, "protected mode"},
		{Refused("NOPERM this user has no permissions to run the 'evalsha' command"), true, "the right +evalsha"},
		{Refused("NOPERM User gates has no permissions to run the 'pubsub|numsub' command"), true, "the right +pubsub|numsub"},
		{Refused("NOPERM this user has no permissions to access one of the keys used as arguments"), true, "the right ~NAME:*"},
		{Refused("NOPERM No permissions to access a key"), true, "the right ~NAME:*"},
		{Refused("NOPERM No permissions to access a channel"), true, "the right &NAME:*"},
		{Refused("ERR The user executing the script can't publish to the channel mentioned in the command script: 1, on @user_script:1."), true, "the right &NAME:*"},
		{Refused("ERR unknown command 'EVALSHA', with args beginning with: "), true, "6.2"},
		{Refused("ERR user_script:12: attempt to index a nil value"), true, "please report"},
		{io.EOF, false, "closed the connection"},
		{os.ErrDeadlineExceeded, false, "i/o timeout"},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, true, "authority"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, true, "does not speak TLS"},
		{&Setup{errors.New("odd"), "do this"}, true, "odd; do this"},
	} {
		got := c.fault(t.Context(), test.err)
		if errors.Is(got, cluster.ErrSetup) != test.setup || !strings.Contains(got.Error(), test.words) ||
			!strings.HasPrefix(got.Error(), "somestore: here:6379: ") || strings.Contains(got.Error(), "\n") {
			t.Errorf("%v is %v, ErrSetup %v; want %q and %v", test.err, got, errors.Is(got, cluster.ErrSetup), test.words, test.setup)
		}
		if !errors.Is(got, test.err) {
			t.Errorf("%v has lost its cause", got)
		}
	}
	<-late.Done()
	if got := c.fault(late, io.EOF); !errors.Is(got, context.DeadlineExceeded) || !strings.Contains(got.Error(), "here:6379") {
		t.Errorf("out of time: %v", got)
	}
}

// TestMissingRight names the command of the line that the server says.
func TestMissingRight(t *testing.T) {
	c := New("somestore", &fake{})
	c.source = "local a = 1\nredis.call('PUBLISH', a, b)\nlocal n = redis.pcall('PUBSUB', 'NUMSUB', a)\nfoo()"
	for line, want := range map[string]string{"2": "+publish", "3": "+pubsub|numsub", "4": "to every command", "9": "to every command"} {
		got := c.missing("The user executing the script can't run this command or subcommand script: 0a, on @user_script:" + line + ".")
		if !strings.HasPrefix(got, want) {
			t.Errorf("line %s: %q, want %q", line, got, want)
		}
	}
}

// TestStats reads names and values in turn.
func TestStats(t *testing.T) {
	l := &cluster.Ledger{}
	_, _ = l.Exchange(cluster.Server{}, &cluster.Request{Key: "k", Instance: "a", Host: "h", Number: 1, Limit: 3, Override: cluster.Override{Limit: -1}})
	var all []any
	for name, value := range l.Fields() {
		all = append(all, name, value)
	}
	f := &fake{answer: func([]string) (any, error) { return all, nil }}
	c := New("somestore", f)
	if st, err := c.Stats(t.Context(), "k"); err != nil || st.Limit != 3 || len(st.Members) != 1 {
		t.Errorf("Stats = %+v, %v", st, err)
	}
	all = []any{"e", "garbage"}
	if _, err := c.Stats(t.Context(), "k"); !errors.Is(err, cluster.ErrSetup) || !strings.Contains(err.Error(), "another name") {
		t.Errorf("Stats of garbage: %v", err)
	}
}

// TestEveryCommandIsProbed compares what the script calls with the documented rights,
// and with what an inspection tries.
func TestEveryCommandIsProbed(t *testing.T) {
	source, _ := cluster.Script()
	probed := map[string]bool{}
	for _, p := range probes {
		probed[p.right] = true
	}
	documented := cluster.Rights("forebay")
	needed := map[string]bool{"+evalsha": true, "+eval": true, "+subscribe": true, "+hgetall": true}
	for _, call := range calls.FindAllStringSubmatch(source, -1) {
		right := rightFor(call[1], call[2])
		needed[right] = true
		if !probed[right] {
			t.Errorf("an inspection does not try %s, which the script needs", right)
		}
	}
	for right := range needed {
		if !slices.Contains(documented, right) {
			t.Errorf("%s is needed and not documented", right)
		}
	}
	for _, right := range documented {
		if right[0] == '+' && !needed[right] {
			t.Errorf("%s is documented and not needed", right)
		}
	}
	if n := strings.Count(source, "redis.call(") + strings.Count(source, "redis.pcall("); n != len(calls.FindAllString(source, -1)) {
		t.Errorf("%d calls in the script, of which not all name their command", n)
	}
}
