//go:build linux

package ops_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// backend answers /hold when it is let go, /slow after a while, the rest at once.
type backend struct {
	*httptest.Server
	held chan struct{} // one for each request that holds
	let  chan struct{}
}

// slow is more than the connect and queue timeouts of the page, which must not count
// for an answer.
const slow = 3 * time.Second

func newBackend(t *testing.T) *backend {
	b := &backend{held: make(chan struct{}, 100), let: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold":
			b.held <- struct{}{}
			select {
			case <-b.let:
			case <-r.Context().Done():
			}
		case "/slow":
			select {
			case <-time.After(slow):
			case <-r.Context().Done():
			}
		}
		w.Header().Set("X-Seen-For", r.Header.Get("X-Forwarded-For"))
		_, _ = w.Write([]byte("hello\n"))
	}))
	t.Cleanup(b.Close)
	return b
}

// fill takes the one slot of a Forebay, and returns how to give it back.
func (b *backend) fill(t *testing.T, url string) (empty func()) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := try(&net.Dialer{}, url+"/hold", nil)
		ended <- err
	}()
	select {
	case <-b.held:
	case err := <-ended:
		t.Fatalf("the call that was to hold the slot ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the call that was to hold the slot did not arrive")
	}
	return func() {
		b.let <- struct{}{}
		if err := <-ended; err != nil {
			t.Errorf("the call that held the slot: %v", err)
		}
	}
}

// front is a proxy in front of Forebay, and how it is tested.
type front struct {
	url     string
	backend *backend
	forebay *forebay
}

// tight is the page's configuration with one slot and a Retry-After that is known.
func tight(t *testing.T, upstream string) string {
	t.Helper()
	c := replace(t, behindProxy(t, upstream), "{max_in_flight: 12, max_wait: 100ms, pool: db}",
		"{max_in_flight: 1, max_wait: 100ms, pool: db, refuse: {retry_after: 7s}}")
	return c + "log: {decisions: all, remote_ip: full}\n"
}

// bound returns a socket for a proxy: opened here, so that nobody takes the port in
// between.
func bound(t *testing.T) (socket *os.File, address string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if socket, err = l.File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket, l.Addr().String()
}

// behindNginx runs the page's nginx in front of a Forebay. Each change is made to the
// snippet: from, to.
func behindNginx(t *testing.T, changes ...string) *front {
	t.Helper()
	nginx := need(t, "nginx", "nginx")
	f := &front{backend: newBackend(t)}
	f.forebay = serve(t, tight(t, f.backend.URL))
	socket, address := bound(t)
	f.url = "http://" + address
	snippet := strings.Join(blocks(t, "nginx"), "")
	for i := 0; i+1 < len(changes); i += 2 {
		snippet = replace(t, snippet, changes[i], changes[i+1])
	}
	snippet = strings.ReplaceAll(snippet, "127.0.0.1:8080", f.forebay.listen)
	snippet = replace(t, snippet, "listen 80;", "listen "+address+";")
	dir := t.TempDir()
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	file := filepath.Join(dir, "nginx.conf")
	writeFile(t, file, user+`
daemon off;
worker_processes 1;
pid `+dir+`/nginx.pid;
error_log stderr warn;
events {}
http {
    access_log off;
    client_body_temp_path `+dir+`/body;
    proxy_temp_path `+dir+`/proxy;
    fastcgi_temp_path `+dir+`/fastcgi;
    uwsgi_temp_path `+dir+`/uwsgi;
    scgi_temp_path `+dir+`/scgi;
    proxy_cache_path `+dir+`/cache keys_zone=made_for_the_test:1m;
`+snippet+"}\n")
	if out, err := exec.Command(nginx, "-t", "-q", "-c", file, "-p", dir).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	cmd := exec.Command(nginx, "-c", file, "-p", dir)
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Env = append(os.Environ(), "NGINX=3;") // how it is handed sockets
	start(t, cmd)
	f.untilAnswered(t)
	return f
}

// behindHAProxy runs the page's HAProxy in front of a Forebay.
func behindHAProxy(t *testing.T) *front {
	t.Helper()
	haproxy := need(t, "haproxy", "haproxy")
	f := &front{backend: newBackend(t)}
	f.forebay = serve(t, tight(t, f.backend.URL))
	socket, address := bound(t)
	f.url = "http://" + address
	snippet := replace(t, strings.Join(blocks(t, "haproxy"), ""), "bind :80", "bind fd@3")
	snippet = replace(t, snippet, "127.0.0.1:8080", f.forebay.listen)
	_, admin, _ := net.SplitHostPort(f.forebay.admin)
	snippet = replace(t, snippet, "port 8081", "port "+admin)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	writeFile(t, file, "global\n    maxconn 200\n\n"+snippet)
	if out, err := checkHAProxy(haproxy, file, socket); err != nil {
		t.Fatalf("haproxy -c: %v\n%s", err, out)
	} else if strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c warns:\n%s", out)
	}
	cmd := exec.Command(haproxy, "-db", "-f", file)
	cmd.ExtraFiles = []*os.File{socket}
	start(t, cmd)
	f.untilAnswered(t)
	return f
}

func checkHAProxy(haproxy, file string, socket *os.File) ([]byte, error) {
	cmd := exec.Command(haproxy, "-c", "-f", file)
	cmd.ExtraFiles = []*os.File{socket}
	return cmd.CombinedOutput()
}

func (f *front) untilAnswered(t *testing.T) {
	t.Helper()
	until(t, "the front answers", func() bool {
		a, err := try(&net.Dialer{}, f.url+"/health", nil)
		return err == nil && a.status == http.StatusOK
	})
}

// decisions returns how many calls Forebay has decided so.
func (f *front) decisions(t *testing.T, decision string) (n int) {
	t.Helper()
	for line := range strings.Lines(f.forebay.metrics(t)) {
		if strings.HasPrefix(line, "forebay_decisions_total{") && strings.Contains(line, `decision="`+decision+`"`) {
			var count int
			if err := json.Unmarshal([]byte(line[strings.LastIndexByte(line, ' ')+1:]), &count); err != nil {
				t.Fatal(err)
			}
			n += count
		}
	}
	return n
}

// passesRefusals: the client sees what Forebay sends, once.
func (f *front) passesRefusals(t *testing.T) {
	empty := f.backend.fill(t, f.url)
	defer empty()
	direct := get(t, "http://"+f.forebay.listen+"/")
	before := f.decisions(t, "rejected_timeout")
	through := get(t, f.url+"/")
	if got := f.decisions(t, "rejected_timeout") - before; got != 1 {
		t.Errorf("one request was refused %d times; the front asks again", got)
	}
	if through.status != http.StatusServiceUnavailable || through.header.Get("Retry-After") != "7" {
		t.Errorf("status %d, Retry-After %q; want 503 and 7", through.status, through.header.Get("Retry-After"))
	}
	for _, name := range []string{"Content-Type", "Cache-Control", "Retry-After", "Proxy-Status", "Content-Length"} {
		if name != "Content-Length" && direct.header.Get(name) != through.header.Get(name) {
			t.Errorf("%s is %q, directly %q", name, through.header.Get(name), direct.header.Get(name))
		}
	}
	id := through.header.Get("X-Request-Id")
	want := strings.Replace(direct.body, direct.header.Get("X-Request-Id"), id, 1)
	if id == "" || through.body != want {
		t.Errorf("the body is %q, want %q", through.body, want)
	}
	f.forebay.logged(t, "the refusal under the front's id", func(l map[string]any) bool {
		return l["request_id"] == id && l["decision"] == "rejected_timeout"
	})
}

// passesSlow: an answer may take its time.
func (f *front) passesSlow(t *testing.T) {
	if a := get(t, f.url+"/slow"); a.status != http.StatusOK || a.body != "hello\n" {
		t.Errorf("a slow answer: status %d, %q", a.status, a.body)
	}
}

// tellsTheCaller: the log has the caller's address, and not one that the caller makes
// up.
func (f *front) tellsTheCaller(t *testing.T) {
	const caller, claimed = "127.0.0.9", "203.0.113.9"
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(caller)}}
	for _, header := range []http.Header{nil, {"X-Forwarded-For": {claimed}}, {"Forwarded": {"for=" + claimed}}, {"X-Real-Ip": {claimed}}} {
		a, err := try(from, f.url+"/", header)
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("%v: status %d, %v", header, a.status, err)
		}
	}
	f.forebay.logged(t, "four calls of "+caller, func() func(map[string]any) bool {
		n := 0
		return func(l map[string]any) bool {
			if l["remote_ip"] == claimed {
				t.Errorf("the log takes the caller's word: %v", l)
			}
			if l["msg"] == "decided" && l["remote_ip"] == caller {
				n++
			}
			return n == 4
		}
	}())
}

// keepsConnections: the front does not make a connection for each request.
func (f *front) keepsConnections(t *testing.T) {
	before := f.openedBy(t)
	for range 20 {
		get(t, f.url+"/")
	}
	if opened := f.openedBy(t) - before; opened > 10 {
		t.Errorf("20 requests took %d connections to Forebay", opened)
	}
}

// openedBy counts the connections that Forebay's host has opened to its port so far:
// the sockets that the kernel still knows, closing ones included.
func (f *front) openedBy(t *testing.T) (n int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(f.forebay.listen)
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	remote := regexp.MustCompile(`(?m)^ *\d+: [0-9A-F]{8}:[0-9A-F]{4} [0-9A-F]{8}:` + strings.ToUpper(hex4(number)) + ` `)
	return len(remote.FindAll(table, -1))
}

func hex4(n int) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]})
}

func TestBehindNginx(t *testing.T) {
	t.Parallel()
	f := behindNginx(t)
	t.Run("refusals", f.passesRefusals)
	t.Run("caller", f.tellsTheCaller)
	t.Run("connections", f.keepsConnections)
	t.Run("slow", f.passesSlow)
}

// With two servers, the second is not asked after the first has refused.
func TestNginxAsksOnce(t *testing.T) {
	t.Parallel()
	f := behindNginx(t, "    server 127.0.0.1:8080;\n", "    server 127.0.0.1:8080;\n    server 127.0.0.1:8080;\n")
	f.passesRefusals(t)
}

// The same test sees nginx ask twice when it is told to: it would notice.
func TestNginxAsksTwiceIfTold(t *testing.T) {
	t.Parallel()
	f := behindNginx(t, "    server 127.0.0.1:8080;\n", "    server 127.0.0.1:8080;\n    server 127.0.0.1:8080;\n",
		"proxy_next_upstream error;", "proxy_next_upstream error http_503;")
	defer f.backend.fill(t, f.url)()
	before := f.decisions(t, "rejected_timeout")
	get(t, f.url+"/")
	if got := f.decisions(t, "rejected_timeout") - before; got != 2 {
		t.Errorf("refused %d times, want 2", got)
	}
}

// A cache that keeps everything does not keep our 503.
func TestNginxCachesNoRefusal(t *testing.T) {
	t.Parallel()
	f := behindNginx(t, "proxy_http_version 1.1;", "proxy_http_version 1.1;\nproxy_cache made_for_the_test;\nproxy_cache_valid any 1m;")
	empty := f.backend.fill(t, f.url)
	refused := get(t, f.url+"/")
	empty()
	after := get(t, f.url+"/")
	if refused.status != http.StatusServiceUnavailable || after.status != http.StatusOK {
		t.Errorf("status %d while full, %d afterwards; want 503 and 200", refused.status, after.status)
	}
}

// TestRJ12RefusalsTakeNobodyOut is RJ-12 with the page's nginx in front of two Forebays, of
// which one is full: however often that one refuses in a row it stays in rotation, and the
// other is given its half and not all.
func TestRJ12RefusalsTakeNobodyOut(t *testing.T) {
	t.Parallel()
	const calls = 20
	other := newBackend(t)
	free := serve(t, tight(t, other.URL))
	f := behindNginx(t, "    server 127.0.0.1:8080;\n", "    server 127.0.0.1:8080 max_fails=1;\n    server "+free.listen+" max_fails=1;\n")
	empty := f.backend.fill(t, "http://"+f.forebay.listen)
	before := f.decisions(t, "rejected_timeout")
	byStatus := map[int]int{}
	for range calls {
		byStatus[get(t, f.url+"/").status]++
	}
	refused := f.decisions(t, "rejected_timeout") - before
	if byStatus[http.StatusServiceUnavailable] != calls/2 || byStatus[http.StatusOK] != calls/2 || refused != calls/2 {
		t.Errorf("by status %v, and the full one has refused %d; want half of %d each", byStatus, refused, calls)
	}
	empty()
	byStatus = map[int]int{}
	for range calls {
		byStatus[get(t, f.url+"/").status]++
	}
	if byStatus[http.StatusOK] != calls {
		t.Errorf("with room again: by status %v", byStatus)
	}
}

// isNotTakenOut: the checks of the front do not take a full Forebay for a dead one.
func (f *front) isNotTakenOut(t *testing.T) {
	defer f.backend.fill(t, f.url)()
	hold := time.After(3 * time.Second) // three checks
	for n := 0; ; n++ {
		if a := get(t, f.url+"/"); a.header.Get("Proxy-Status") == "" {
			t.Fatalf("request %d: the front answers itself, with %d: it has taken out a full Forebay", n, a.status)
		}
		select {
		case <-hold:
			return
		default:
		}
	}
}

func TestBehindHAProxy(t *testing.T) {
	t.Parallel()
	f := behindHAProxy(t)
	t.Run("refusals", f.passesRefusals)
	t.Run("caller", f.tellsTheCaller)
	t.Run("connections", f.keepsConnections)
	t.Run("slow", f.passesSlow)
	t.Run("RJ-12: full is not down", f.isNotTakenOut)
	t.Run("draining is down", func(t *testing.T) {
		res, err := http.Post("http://"+f.forebay.admin+"/drain", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		until(t, "HAProxy takes a draining Forebay out", func() bool {
			a := get(t, f.url+"/")
			return a.status == http.StatusServiceUnavailable && a.header.Get("Proxy-Status") == ""
		})
	})
}

// The timeouts of the snippets are the front_timeout of the configuration.
func TestFrontTimeouts(t *testing.T) {
	told := regexp.MustCompile(`front_timeout: (\S+)`).FindStringSubmatch(configurations(t)[0])
	for language, pattern := range map[string]string{"nginx": `proxy_read_timeout (\w+);`, "haproxy": `timeout server (\w+)`} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(strings.Join(blocks(t, language), ""))
		if m == nil || told == nil || m[1] != told[1] {
			t.Errorf("%s: %v, the configuration says %v", language, m, told)
		}
	}
	idle := regexp.MustCompile(`(?m)^\s+keepalive_timeout (\w+);`).FindStringSubmatch(strings.Join(blocks(t, "nginx"), ""))
	if idle == nil {
		t.Fatal("the snippet of nginx has no keepalive_timeout")
	}
	if d, err := time.ParseDuration(idle[1]); err != nil || d >= 75*time.Second {
		t.Errorf("nginx keeps connections for %s; Forebay does for 75s, and must be the last to close", idle[1])
	}
}
