//go:build unix

package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// request is what a client is told to send.
type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Length  int               `json:"length"`  // of the body
	Chunked bool              `json:"chunked"` // its length is not said
	Headers map[string]string `json:"headers"`
}

// got is what a client saw.
type got struct {
	Status     int
	RetryAfter string
	Type       string
	Text       string
	Continued  bool // a 100 came before; only curl tells
}

// aClient sends requests to an address, one after the other.
type aClient struct {
	name string
	send func(t *testing.T, address string, all []request) []got
}

// httpClients are those that speak plain HTTP. One that is not installed skips its test.
var httpClients = []aClient{
	{"Go", each(goClient)},
	{"curl", each(curl())},
	{"curl over HTTP2", each(curl("--http2-prior-knowledge"))},
	{"curl that does not ask first", each(curl("-H", "Expect:"))},
	{"Node", script("node", "client.mjs")},
	{"Python", script("python3", "client.py")},
}

// each sends one request at a time.
func each(send func(*testing.T, string, request) got) func(*testing.T, string, []request) []got {
	return func(t *testing.T, address string, all []request) (saw []got) {
		t.Helper()
		for _, r := range all {
			saw = append(saw, send(t, address, r))
		}
		return saw
	}
}

func goClient(t *testing.T, address string, r request) got {
	t.Helper()
	var body io.Reader = strings.NewReader(strings.Repeat("x", r.Length))
	if r.Chunked {
		body = io.MultiReader(body) // which says no length
	}
	req, err := http.NewRequestWithContext(within(t), r.Method, "http://"+address+r.Path, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return seen(t, res)
}

func seen(t *testing.T, res *http.Response) got {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("the body: %v", err)
	}
	return got{Status: res.StatusCode, RetryAfter: res.Header.Get("Retry-After"), Type: res.Header.Get("Content-Type"), Text: string(text)}
}

// script runs a client of testdata.
func script(interpreter, file string) func(*testing.T, string, []request) []got {
	return func(t *testing.T, address string, all []request) (saw []got) {
		t.Helper()
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		path := tool(t, interpreter)
		if interpreter == "node" && !bytes.Contains(run(t, path, "-p", "typeof fetch"), []byte("function")) {
			t.Skip("this node has no fetch; 18 has")
		}
		out := run(t, path, filepath.Join("testdata", file), address, string(text))
		for line := range bytes.Lines(out) {
			var g got
			if err := json.Unmarshal(line, &g); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			saw = append(saw, g)
		}
		return saw
	}
}

func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(within(t), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %.200q: %v\n%s", name, args, err, stderr.Bytes())
	}
	return out
}

func curl(more ...string) func(*testing.T, string, request) got {
	return func(t *testing.T, address string, r request) (g got) {
		t.Helper()
		args := append([]string{"-q", "-sS", "-i", "--noproxy", "*"}, more...)
		if r.Method == http.MethodHead {
			args = append(args, "-I")
		} else {
			args = append(args, "-X", r.Method)
		}
		for name, value := range r.Headers {
			args = append(args, "-H", name+": "+value)
		}
		if r.Length > 0 {
			body := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(body, bytes.Repeat([]byte("x"), r.Length), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--data-binary", "@"+body)
		}
		if r.Chunked && !strings.Contains(strings.Join(more, " "), "http2") {
			args = append(args, "-H", "Transfer-Encoding: chunked")
		}
		out := run(t, tool(t, "curl"), append(args, "http://"+address+r.Path)...)
		rd := bufio.NewReader(bytes.NewReader(bytes.ReplaceAll(out, []byte("HTTP/2 "), []byte("HTTP/2.0 "))))
		for {
			res, err := http.ReadResponse(rd, &http.Request{Method: r.Method})
			if err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			if res.StatusCode == http.StatusContinue {
				g.Continued = true
				continue
			}
			continued := g.Continued
			g = seen(t, res)
			g.Continued = continued
			return g
		}
	}
}

// upstream answers with the length of what it gets, and below /theirs with a refusal of its
// own.
func upstream(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/theirs") {
		w.Header().Set("Retry-After", "77")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "theirs")
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%s %d", r.Method, n)
}

const openAndFull = `
upstream: %s
intake: {discard_time: 1m}
gates:
  open: {max_in_flight: 4}
  full: {max_in_flight: closed, refuse: {retry_after: 3s}}
routes:
  - {match: /, gate: open}
  - {match: /full/, gate: full}
`

// TestHTTPClients: each sees the refusal, whole and in its form, whatever it sends; and
// what is admitted as if nobody stood between.
func TestHTTPClients(t *testing.T) {
	const (
		small, large, huge = 100, 8 << 20, 64_000_000
		busy               = `"error":"server_busy","reason":"rejected_busy","gate":"full"`
		plain              = "text/plain; charset=utf-8"
		ours, problem      = "application/json", "application/problem+json"
	)
	p := start(t, fmt.Sprintf(openAndFull, serve(t, http.HandlerFunc(upstream)).URL))
	accept := func(kinds string) map[string]string { return map[string]string{"Accept": kinds} }
	cases := []struct {
		name string
		send request
		want got // Text: a part of it; "-": nothing
	}{
		{"admitted", request{Method: "GET", Path: "/x"}, got{200, "", plain, "GET 0", false}},
		{"admitted, with a body", request{Method: "POST", Path: "/x", Length: large}, got{200, "", plain, "POST 8388608", false}},
		{"admitted, in chunks", request{Method: "PUT", Path: "/x", Length: large, Chunked: true}, got{200, "", plain, "PUT 8388608", false}},
		{"the upstream's own refusal", request{Method: "POST", Path: "/theirs", Length: small}, got{429, "77", "text/plain", "theirs", false}},
		{"refused", request{Method: "GET", Path: "/full/x"}, got{503, "3", ours, busy, false}},
		{"refused, HEAD", request{Method: "HEAD", Path: "/full/x"}, got{503, "3", ours, "-", false}},
		{"refused, a small body", request{Method: "POST", Path: "/full/x", Length: small}, got{503, "3", ours, busy, false}},
		{"refused, a large body", request{Method: "POST", Path: "/full/x", Length: large}, got{503, "3", ours, busy, false}},
		{"refused, a huge body", request{Method: "PUT", Path: "/full/x", Length: huge}, got{503, "3", ours, busy, false}},
		{"refused, in chunks", request{Method: "POST", Path: "/full/x", Length: large, Chunked: true}, got{503, "3", ours, busy, false}},
		{"refused, problem details", request{Method: "GET", Path: "/full/x", Headers: accept("application/problem+json, */*;q=0.1")}, got{503, "3", problem, `"reason":"rejected_busy"`, false}},
		{"refused, a page", request{Method: "GET", Path: "/full/x", Headers: accept("text/html,*/*;q=0.8")}, got{503, "3", "text/html; charset=utf-8", "<html", false}},
	}
	var all []request
	for _, c := range cases {
		all = append(all, c.send)
	}
	for _, client := range httpClients {
		t.Run(client.name, func(t *testing.T) {
			saws := client.send(t, p.data, all)
			if len(saws) != len(all) {
				t.Fatalf("%d answers to %d requests", len(saws), len(all))
			}
			for i, saw := range saws {
				c := cases[i]
				text := strings.Contains(saw.Text, c.want.Text)
				if c.want.Text == "-" {
					text = saw.Text == ""
				}
				if saw.Status != c.want.Status || saw.RetryAfter != c.want.RetryAfter || saw.Type != c.want.Type || !text {
					t.Errorf("%s: saw %d, Retry-After %q, %s, %.300q; want %d, %q, %s, %q", c.name,
						saw.Status, saw.RetryAfter, saw.Type, saw.Text, c.want.Status, c.want.RetryAfter, c.want.Type, c.want.Text)
				}
				if asked := client.name == "curl" && c.send.Length >= large; saw.Continued != (asked && c.want.Status == 200) {
					t.Errorf("%s: was told to go on: %v", c.name, saw.Continued)
				}
			}
		})
	}
	p.nothingLeft("open", "full")
}

// TestCurlComesBack: curl waits for as long as Retry-After says, and is served then.
func TestCurlComesBack(t *testing.T) {
	path := tool(t, "curl")
	config := strings.ReplaceAll(openAndFull, "retry_after: 3s", "retry_after: 1s")
	p := start(t, fmt.Sprintf(config, serve(t, http.HandlerFunc(upstream)).URL))
	out := make(chan string, 1)
	go func() {
		text, err := exec.CommandContext(within(t), path, "-q", "-sS", "--noproxy", "*", "--retry", "1", "http://"+p.data+"/full/x").CombinedOutput()
		out <- fmt.Sprint(string(text), err)
	}()
	eventually(t, "it was refused", func() bool { return p.stats("full").RejectedBusy == 1 })
	p.limit("full", "1")
	if text := <-out; !strings.Contains(text, "GET 0") {
		t.Errorf("curl says %s", text)
	}
	if st := p.stats("full"); st.Accepted != 1 || st.RejectedBusy != 1 {
		t.Errorf("%+v", st)
	}
	p.nothingLeft("full")
}
