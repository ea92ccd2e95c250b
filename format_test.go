package forebay

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// RJ-14: whoever asks gets what it reads best, and never something that it says it
// cannot read while there is another.
func TestRJ14AcceptChoosesTheFormat(t *testing.T) {
	const plain, problem, page = "application/json", "application/problem+json", "text/html; charset=utf-8"
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, plain},
		{[]string{""}, plain},
		{[]string{"*/*"}, plain},
		{[]string{"application/json"}, plain},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"}, page}, // Chrome, Firefox
		{[]string{"text/html"}, page},
		{[]string{"TEXT/HTML ; Q=1"}, page},
		{[]string{"text/html, */*"}, page},
		{[]string{"text/html;q=0.5, */*"}, plain},
		{[]string{"text/html;q=0"}, plain},
		{[]string{"text/html;q=0.000, application/xml"}, plain},
		{[]string{"text/html;q=0.001"}, page},
		{[]string{"text/html, application/json"}, plain},
		{[]string{"text/html, application/json;q=0.9"}, page},
		{[]string{"text/html", "application/json;q=0"}, page},
		{[]string{"application/json, text/plain, */*"}, plain}, // axios
		{[]string{"application/json, text/javascript, */*; q=0.01"}, plain},
		{[]string{"application/*, text/html;q=0.9"}, plain},
		{[]string{"application/*;q=0.5, text/html;q=0.9"}, page},
		{[]string{"application/problem+json"}, problem},
		{[]string{"application/json, application/problem+json;q=0.9"}, problem},
		{[]string{"application/json", "application/problem+json"}, problem},
		{[]string{"text/html, Application/Problem+JSON;q=0.1"}, problem},
		{[]string{"application/problem+json;q=0"}, plain},
		{[]string{"application/problem+json; q=0.000, application/json;q=1"}, plain},
		{[]string{"application/problem+json, application/json;q=0"}, problem},
		{[]string{";;nonsense", "text/html/json", "q=1", ",,,", "text/html;q=", "/"}, page}, // no weight counts as the full one
		{[]string{";;nonsense", "text/html;q=0x", strings.Repeat(",", 1000)}, plain},
	} {
		g := httpGate(t, Config{MaxInFlight: 1})
		var header []string
		for _, a := range c.accept {
			header = append(header, "Accept", a)
		}
		w := refusedWith(g, RejectedBusy, header...)
		if got := w.Header().Get("Content-Type"); got != c.want {
			t.Errorf("Accept %q: %s, want %s", c.accept, got, c.want)
		}
		if isPage := strings.HasPrefix(w.Body.String(), "<!doctype html>"); isPage != (c.want == page) {
			t.Errorf("Accept %q: body %q", c.accept, w.Body)
		}
	}
}

func TestRJ14Page(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1})
	busy, never := refusedWith(g, RejectedBusy, "Accept", "text/html"), refusedWith(g, RejectedTooLarge, "Accept", "text/html")
	for text, w := range map[string]*httptest.ResponseRecorder{
		"<title>503 Service Unavailable</title>": busy, "try again in 2 seconds": busy,
		"reports rejected_busy, 4bf92f35":             busy,
		"<title>413 Request Entity Too Large</title>": never, "Trying again will not help": never,
	} {
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("the page lacks %q: %s", text, w.Body)
		}
	}
	if n := busy.Body.Len(); n > 400 {
		t.Errorf("%d bytes", n)
	}
	hidden := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Refusal: Refusal{HideGate: true, HideReason: true}})
	if w := refusedWith(hidden, RejectedBusy, "Accept", "text/html"); !strings.Contains(w.Body.String(), "<small>4bf92f35</small>") {
		t.Errorf("hidden: %s", w.Body)
	}
}

// frappe is the answer of an application that the gate stands in front of, so that its
// own clients understand the refusal.
const frappe = `{"exc_type":"TooManyConcurrentRequests","exception":"frappe.TooManyConcurrentRequests: {gate} is {reason}",` +
	`"_server_messages":"[\"{\\\"message\\\": \\\"{title}: try again in {retry_after} s ({request_id})\\\"}\"]","http_status_code":{status},"code":"{error}"}`

func TestRJ14BodyOfTheGate(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Refusal: Refusal{Body: frappe, Status: 429}})
	for _, accept := range []string{"", "text/html", "application/problem+json"} {
		w := refusedWith(g, RejectedBusy, "Accept", accept)
		var got struct {
			ExcType  string `json:"exc_type"`
			Code     string
			Messages string `json:"_server_messages"`
			Status   int    `json:"http_status_code"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.ExcType != "TooManyConcurrentRequests" || got.Status != 429 || got.Code != "server_busy" {
			t.Errorf("%v: %+v of %s", err, got, w.Body)
		}
		if !strings.Contains(got.Messages, "Too Many Requests: try again in 2 s (4bf92f35)") || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%q %v", got.Messages, w.Header())
		}
		if !strings.Contains(w.Body.String(), "reports is rejected_busy") {
			t.Errorf("%s", w.Body)
		}
	}
	if w := refusedWith(g, RejectedTooLarge); !strings.Contains(w.Body.String(), "try again in 0 s") || w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	style := Refusal{ContentType: "text/html; charset=utf-8", Body: "<style>p {color:red} a{}</style><p>{request_id}{request_id}"}
	w := refusedWith(httpGate(t, Config{MaxInFlight: 1, Refusal: style}), RejectedBusy)
	if got, want := w.Body.String(), "<style>p {color:red} a{}</style><p>4bf92f354bf92f35"; got != want || w.Header().Get("Content-Type") != style.ContentType {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRefusalHeaders(t *testing.T) {
	own := http.Header{"X-Site": {"a", "b"}, "Vary": {"Cookie"}}
	look := Refusal{Headers: own, CORS: CORS{Origins: []string{"https://a.example"}}}
	g := httpGate(t, Config{MaxInFlight: 1, Refusal: look})
	own["X-Site"][0] = "spoilt"
	h := refusedWith(g, RejectedBusy).Header()
	h.Add("X-Site", "c")
	h = refusedWith(g, RejectedBusy).Header()
	if got := strings.Join(h["X-Site"], " ") + " " + strings.Join(h["Vary"], " "); got != "a b Cookie Origin" {
		t.Errorf("%q", got)
	}
}

func TestRefusalMistakesOfBodiesAndHeaders(t *testing.T) {
	for _, c := range []struct {
		look Refusal
		want []string
	}{
		{Refusal{Body: `{"a":"{gate}"}`}, nil},
		{Refusal{Body: `{"a":{retry_after}}`, ContentType: "application/vnd.x+json"}, nil},
		{Refusal{Body: "plain {status}", ContentType: "text/plain"}, nil},
		{Refusal{Body: `{"a":{gate}}`}, []string{"Body gives no valid JSON"}},
		{Refusal{Body: "plain"}, []string{"Body gives no valid JSON"}},
		{Refusal{Body: `"{gates}"`}, []string{"Body has {gates}; what is filled in is {status}"}},
		{Refusal{Body: `"{e}"`}, []string{"Body has {e}; what is filled in is {status}"}},
		{Refusal{Body: "x", ContentType: "html"}, []string{`ContentType is "html"`}},
		{Refusal{Body: "x", ContentType: "text/html\r\nX: y"}, []string{"ContentType is"}},
		{Refusal{ContentType: "text/html"}, []string{"without a Body"}},
		{Refusal{Body: `""`, Problem: true}, []string{"a Body and Problem"}},
		{Refusal{Body: `"` + strings.Repeat("x", maxBody) + `"`}, []string{"at most 65536"}},
		{Refusal{Headers: http.Header{"X-A": {"b", ""}}}, nil},
		{Refusal{Headers: http.Header{"Retry-After": {"1"}, "connection": {"x"}, "x-a": {"b"}, "X B": {"c"}, "X-C": {"a\r\nb"}, "X-D": nil}},
			[]string{`"Retry-After"; a refusal sets`, `"connection"; a refusal`, `"x-a"; write X-A`, `"X B"; it must be the name`, `"X-C"; its value`, `"X-D"; it has no value`}},
		{Refusal{CORS: CORS{Origins: []string{"https://a.example", "http://b.example:8080"}, Credentials: true}}, nil},
		{Refusal{CORS: CORS{Origins: []string{"*"}}}, nil},
		{Refusal{CORS: CORS{Origins: []string{"*"}, Credentials: true}}, []string{"browsers refuse that"}},
		{Refusal{CORS: CORS{Origins: []string{"*", "https://a.example"}}}, []string{"stands alone"}},
		{Refusal{CORS: CORS{Credentials: true}}, []string{"without Origins"}},
		{Refusal{CORS: CORS{Origins: []string{"https://A.example", "a.example", "https://a.example/", "null", "https://a.example\r\n", "https://*.example/x", "https://a:"}}},
			[]string{`"https://A.example"`, `"a.example"`, `"https://a.example/"`, `"null"`, `"https://a.example\r\n"`, `"https://*.example/x"`, `"https://a:"`}},
	} {
		_, err := New(Config{MaxInFlight: 1, Refusal: c.look})
		if (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v", c.look, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v\nwant %q", c.look, err, want)
			}
		}
	}
}

// RJ-10: a call of gRPC gets HTTP 200 and its status, in headers and without a body.
func TestRJ10RefusalForGRPC(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Refusal: Refusal{Status: 429}})
		for d, pushback := range map[Decision]string{RejectedBusy: "2000", RejectedTimeout: "2000", RejectedTooLarge: "-1"} {
			srv, _ := listen(t, version, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				Refuse(w, r, rejectedBy(g, d))
			}))
			for sent, back := range map[string]string{
				"application/grpc": "application/grpc", "application/grpc+proto": "application/grpc", "Application/gRPC;x=y": "application/grpc",
				"application/grpc-web-text": "application/grpc-web-text", "application/grpc-web+proto": "application/grpc-web+proto",
			} {
				r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/shop.Orders/List", strings.NewReader("\x00\x00\x00\x00\x00"))
				must(err)
				r.Header.Set("Content-Type", sent)
				res := fetch(t, srv, r)
				h := res.Header
				if res.StatusCode != 200 || len(res.body) > 0 || h.Get("Content-Type") != back || h.Get("Grpc-Status") != "8" || h.Get("Grpc-Retry-Pushback-Ms") != pushback {
					t.Errorf("%s: %d %q %v", sent, res.StatusCode, res.body, h)
				}
				if want := strings.Replace("server busy: reports "+d.String(), "server busy: reports rejected_too", "too large: reports rejected_too", 1); h.Get("Grpc-Message") != want {
					t.Errorf("message %q, want %q", h.Get("Grpc-Message"), want)
				}
			}
		}
	})
}

// What only looks like gRPC is answered as everybody is.
func TestRJ10NoGRPC(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	for _, c := range [][2]string{{"GET", "application/grpc"}, {"POST", "application/grpcx"}, {"POST", "application/json"}, {"POST", ""}} {
		r := httptest.NewRequest(c[0], "/", nil)
		r.Header.Set("Content-Type", c[1])
		w := httptest.NewRecorder()
		Refuse(w, r, rejectedBy(g, RejectedBusy))
		if w.Code != 503 || w.Header().Get("Grpc-Status") != "" || w.Body.Len() == 0 {
			t.Errorf("%q: %d %v", c, w.Code, w.Header())
		}
	}
}

// RJ-07: a page of a known origin can read status and Retry-After; one of another
// cannot, and nothing is reflected.
func TestRJ07RefusalCanBeReadByPages(t *testing.T) {
	named := CORS{Origins: []string{"https://a.example", "https://b.example:8443"}}
	withCookies := CORS{Origins: named.Origins, Credentials: true}
	for _, c := range []struct {
		cors   CORS
		origin string
		want   string // Allow-Origin, Allow-Credentials, Expose-Headers, Vary
	}{
		{CORS{}, "https://a.example", "|||"},
		{named, "https://a.example", "https://a.example||Retry-After, X-Request-Id|Origin"},
		{named, "https://b.example:8443", "https://b.example:8443||Retry-After, X-Request-Id|Origin"},
		{withCookies, "https://a.example", "https://a.example|true|Retry-After, X-Request-Id|Origin"},
		{named, "https://b.example", "|||Origin"},
		{named, "null", "|||Origin"},
		{named, "*", "|||Origin"},
		{named, "", "|||Origin"},
		{withCookies, "https://evil.example", "|||Origin"},
		{CORS{Origins: []string{"*"}}, "https://c.example", "*||Retry-After, X-Request-Id|"},
	} {
		g := httpGate(t, Config{MaxInFlight: 1, Refusal: Refusal{CORS: c.cors}})
		var header []string
		if c.origin != "" {
			header = []string{"Origin", c.origin}
		}
		h := refusedWith(g, RejectedBusy, header...).Header()
		got := strings.Join([]string{
			h.Get("Access-Control-Allow-Origin"), h.Get("Access-Control-Allow-Credentials"), h.Get("Access-Control-Expose-Headers"), h.Get("Vary"),
		}, "|")
		if got != c.want {
			t.Errorf("%+v, origin %q: %s, want %s", c.cors, c.origin, got, c.want)
		}
	}
}

func TestRJ07LayerInFrontStands(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1, Refusal: Refusal{CORS: CORS{Origins: []string{"*"}}}})
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Allow-Origin", "https://a.example")
	Refuse(w, httptest.NewRequest("GET", "/", nil), rejectedBy(g, RejectedBusy))
	if got := w.Header()["Access-Control-Allow-Origin"]; len(got) != 1 || got[0] != "https://a.example" {
		t.Errorf("%q", got)
	}
}

// RJ-08: a full gate refuses no preflight, and a plain OPTIONS as any other request.
func TestRJ08PreflightsAreNotGated(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, MaxWait: time.Minute, MaxWaiting: 1})
	if err := g.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	for name, wrap := range wraps(t, g) {
		h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method) }))
		for _, c := range []struct {
			method  string
			headers []string
			passes  bool
		}{
			{"OPTIONS", []string{"Origin", "Access-Control-Request-Method"}, true},
			{"OPTIONS", []string{"Origin"}, false},
			{"OPTIONS", []string{"Access-Control-Request-Method"}, false},
			{"OPTIONS", nil, false},
			{"GET", []string{"Origin", "Access-Control-Request-Method"}, false},
			{"POST", []string{"Origin", "Access-Control-Request-Method"}, false},
		} {
			before := g.Stats()
			r := httptest.NewRequest(c.method, "/", nil)
			for _, key := range c.headers {
				r.Header.Set(key, "x")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if passed := w.Code == 200 && w.Body.String() == c.method; passed != c.passes {
				t.Errorf("%s: %s with %q: %d", name, c.method, c.headers, w.Code)
			}
			if n := g.Stats().Decisions() - before.Decisions(); n > 1 || c.passes && n != 0 {
				t.Errorf("%s: %s with %q: %d decisions", name, c.method, c.headers, n)
			}
		}
	}
}

// Groups tell of preflights as of what is exempt.
func TestRJ08PreflightsAreExemptInGroups(t *testing.T) {
	log := &httpEvents{}
	g := httpGate(t, Config{MaxInFlight: 1})
	groups, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/api/", Gates: []*Gate{g}}}, Observers: []Observer{log}})
	must(err)
	r := httptest.NewRequest("OPTIONS", "/api/x", nil)
	r.Header.Set("Origin", "https://a.example")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	groups.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(httptest.NewRecorder(), r)
	if all := log.all(); len(all) != 1 || all[0].Decision != Exempted || all[0].Route != "/api/" || g.Stats().Decisions() != 0 {
		t.Errorf("%+v", all)
	}
}
