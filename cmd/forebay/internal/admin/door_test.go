package admin

import (
	"net/http"
	"strings"
	"testing"
)

const secret = "0123456789abcdef0123456789abcdef"

// everything is one request for each endpoint.
var everything = []string{
	"GET /", "GET /health", "GET /ready", "GET /metrics", "GET /stats", "GET /stats/reports", "GET /holders", "GET /holders/reports",
	"GET /gates", "GET /gates/reports/max_in_flight", "PUT /gates/reports/max_in_flight", "DELETE /gates/reports/max_in_flight",
	"POST /reload", "POST /drain", "DELETE /drain", "GET /nothing", "POST /health",
}

func TestTokenOpensEverythingElse(t *testing.T) {
	for _, loopback := range []bool{false, true} {
		h := Handler(program(t, "reports"), metricsHandler(), Options{Token: secret, Loopback: loopback})
		for _, what := range everything {
			open := strings.HasSuffix(what, "/health") || strings.HasSuffix(what, "/ready")
			for _, sent := range []string{"", "Bearer", "Bearer ", "Bearer " + secret[:31], "Bearer " + secret + "0", "Bearer " + strings.ToUpper(secret), "Basic " + secret, secret} {
				w := ask(h, what, "", "Authorization: "+sent, "Host: gate.example:8081")
				if open {
					if w.Code == 401 || strings.Contains(w.Body.String(), "reports") {
						t.Errorf("%s with %q: %d %s", what, sent, w.Code, w.Body)
					}
					continue
				}
				if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), "reports") {
					t.Errorf("%s with %q: %d %s", what, sent, w.Code, w.Body)
				}
			}
			for _, sent := range []string{"Bearer " + secret, "bearer  " + secret} {
				if w := ask(h, what, "", "Authorization: "+sent, "Host: gate.example:8081"); w.Code == 401 || w.Code == 403 {
					t.Errorf("%s with the token: %d %s", what, w.Code, w.Body)
				}
			}
		}
		if w := ask(h, "GET /health", "", "Authorization: Bearer "+secret); !strings.Contains(w.Body.String(), `"name":"reports"`) {
			t.Errorf("health with the token names no gates: %s", w.Body)
		}
	}
}

func TestWithoutTokenOnlyLoopbackIsServed(t *testing.T) {
	h := Handler(program(t, "reports"), metricsHandler(), Options{})
	for _, what := range everything {
		w := ask(h, what, "", "Authorization: Bearer ")
		open := strings.HasSuffix(what, "/health") || strings.HasSuffix(what, "/ready")
		if open == (w.Code == 403) || strings.Contains(w.Body.String(), "reports") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
}

func TestForeignHostsAreRefusedOnLoopback(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	for host, served := range map[string]bool{
		"localhost": true, "localhost:8081": true, "LOCALHOST:1": true, "127.0.0.1": true, "127.0.0.1:8081": true, "127.1.2.3:80": true,
		"[::1]": true, "[::1]:8081": true, "": true,
		"evil.example": false, "evil.example:8081": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8081": false,
		"192.0.2.1:8081": false, "0.0.0.0:8081": false, "[2001:db8::1]:8081": false, "forebay.localhost:8081": false, "127.0.0.1@evil.example": false,
		"[::1%25lo]:8081": false, "2130706433": false, "0x7f.1": false,
	} {
		for _, what := range everything {
			if w := ask(h, what, "", "Host: "+host); served == (w.Code == 403) {
				t.Errorf("%s of %q: %d %s", what, host, w.Code, w.Body)
			}
		}
	}
	if p.overrides != nil {
		t.Error("something was changed")
	}
}

func TestOtherOriginsChangeNothing(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		served  bool
	}{
		"a tool":                    {nil, true},
		"our page":                  {[]string{"Origin: http://localhost:8081", "Sec-Fetch-Site: same-origin"}, true},
		"the address bar":           {[]string{"Sec-Fetch-Site: none"}, true},
		"our page, old browser":     {[]string{"Origin: http://localhost:8081"}, true},
		"another site":              {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, false},
		"another port":              {[]string{"Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"}, false},
		"another port, old":         {[]string{"Origin: http://localhost:3000"}, false},
		"a sandboxed frame":         {[]string{"Origin: null"}, false},
		"a lie in Sec-Fetch-Site":   {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross"}, false},
		"another site, no Origin":   {[]string{"Sec-Fetch-Site: cross-site"}, false},
		"a site named like us":      {[]string{"Origin: http://localhost:8081.evil.example"}, false},
		"another site with a token": {[]string{"Origin: https://evil.example", "Authorization: Bearer " + secret}, false},
	} {
		for _, opts := range []Options{local, {Token: secret}} {
			p := program(t, "reports")
			h := Handler(p, metricsHandler(), opts)
			headers := c.headers
			if opts.Token != "" {
				headers = append([]string{"Authorization: Bearer " + secret}, headers...)
			}
			for _, what := range []string{"POST /reload", "POST /drain", "DELETE /drain", "PUT " + limitPath, "DELETE " + limitPath} {
				body := ""
				if strings.HasPrefix(what, "PUT") {
					body = `{"max_in_flight":1}`
				}
				if w := ask(h, what, body, headers...); (w.Code == http.StatusForbidden) == c.served {
					t.Errorf("%s by %s: %d %s", what, name, w.Code, w.Body)
				}
			}
			if w := ask(h, "GET /stats", "", headers...); w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("a read by %s: %d", name, w.Code)
			}
			if changed := p.reloads > 0 || len(p.overrides) > 0 || p.gates[0].Stats().Capacity != 2; changed && !c.served {
				t.Errorf("%s changed something", name)
			}
		}
	}
}
