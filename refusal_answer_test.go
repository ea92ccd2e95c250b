package forebay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// RJ-13: HEAD has no body. net/http would take it out; other writers would not.
func TestRJ13HeadHasNoBody(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	for _, d := range refusedDecisions {
		get, head := httptest.NewRecorder(), httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Request-Id", "a")
		Refuse(get, r, rejectedBy(g, d))
		r.Method = "HEAD"
		Refuse(head, r, rejectedBy(g, d))
		if head.Body.Len() > 0 || head.Code != get.Code {
			t.Errorf("%v: HEAD %d %q, GET %d", d, head.Code, head.Body, get.Code)
		}
		for key, values := range get.Header() {
			if !slices.Equal(head.Header()[key], values) {
				t.Errorf("%v: %s is %q for HEAD, %q for GET", d, key, head.Header()[key], values)
			}
		}
	}
}

// Refusals share header values; what a middleware appends or sets stays with its
// own answer.
func TestSharedHeadersCannotBeCorrupted(t *testing.T) {
	for _, look := range []Refusal{{}, {Problem: true}, {RetryAfter: RetryAfter{Fixed: 10 * time.Second}}} {
		g := httpGate(t, Config{MaxInFlight: 1, Refusal: look})
		for _, d := range refusedDecisions {
			clean := refusedWith(g, d).Header().Clone()
			for range 3 {
				spoilt := refusedWith(g, d).Header()
				for key := range spoilt {
					spoilt.Add(key, "added")
					spoilt[key] = append(spoilt[key], "appended")
				}
				for key := range spoilt {
					spoilt.Set(key, "set")
				}
			}
			for key, values := range refusedWith(g, d).Header() {
				if !slices.Equal(values, clean[key]) {
					t.Errorf("%v: %s has become %q, was %q", d, key, values, clean[key])
				}
				if cap(values) != len(values) {
					t.Errorf("%v: %s has room to append in place", d, key)
				}
			}
		}
	}
}

func TestRefuseTellsNothingOfOtherErrors(t *testing.T) {
	w := httptest.NewRecorder()
	Refuse(w, httptest.NewRequest("GET", "/", nil), errors.New("dial tcp 10.0.0.7: password wrong"))
	if w.Code != http.StatusInternalServerError || strings.TrimSpace(w.Body.String()) != "Internal Server Error" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// Refuse writes nothing when the error or the request's context says that the
// caller left, and does answer when a deadline passed: that caller waits.
func TestRefuseOfACallerThatLeft(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	left, leave := context.WithCancelCause(t.Context())
	leave(errors.New("hung up"))
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	_, errLeft := g.Acquire(left, Call{})
	_, errLate := g.Acquire(late, Call{})
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"the error says it", t.Context(), errLeft, 0},
		{"both say it", left, errLeft, 0},
		{"bare", t.Context(), context.Canceled, 0},
		{"the context says it", left, errors.New("whatever"), 0},
		{"a deadline is refused", late, errLate, 503},
		{"a deadline of something else", late, errors.New("whatever"), 500},
	} {
		rec := &codeWriter{ResponseRecorder: httptest.NewRecorder()}
		Refuse(rec, httptest.NewRequest("GET", "/", nil).WithContext(c.ctx), c.err)
		if rec.code != c.want || c.want == 0 && len(rec.Header())+rec.Body.Len() > 0 {
			t.Errorf("%s: %d %v %q", c.name, rec.code, rec.Header(), rec.Body)
		}
	}
}

// codeWriter tells a status that was written from the recorder's default.
type codeWriter struct {
	*httptest.ResponseRecorder
	code int
}

func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseRecorder.WriteHeader(code)
}

func TestRefusalMistakes(t *testing.T) {
	for _, c := range []struct {
		look Refusal
		want []string
	}{
		{Refusal{}, nil},
		{Refusal{Status: 400, RetryAfter: RetryAfter{Min: 5 * time.Second, Max: 5 * time.Second}}, nil},
		{Refusal{Status: 599, RetryAfter: RetryAfter{Min: time.Hour}}, nil}, // Max follows
		{Refusal{Status: 399}, []string{"Status is 399"}},
		{Refusal{Status: 200}, []string{"Status is 200"}},
		{Refusal{Status: 600}, []string{"Status is 600"}},
		{Refusal{RetryAfter: RetryAfter{Min: -1}}, []string{"RetryAfter.Min is -1ns"}},
		{Refusal{RetryAfter: RetryAfter{Max: 25 * time.Hour}}, []string{"RetryAfter.Max is 25h"}},
		{Refusal{RetryAfter: RetryAfter{Min: 3 * time.Second, Max: 2 * time.Second}}, []string{"Min is 3 s, above its Max of 2 s"}},
		{Refusal{RetryAfter: RetryAfter{Fixed: 1, Min: 1}}, []string{"has Fixed and bounds"}},
		{Refusal{Status: 1, RetryAfter: RetryAfter{Fixed: -1, Max: -1}},
			[]string{"Status is 1", "RetryAfter.Fixed is -1ns", "RetryAfter.Max is -1ns"}},
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

// A new configuration changes how the next refusal looks.
func TestRefusalFollowsReconfigure(t *testing.T) {
	config := Config{Name: "reports", MaxInFlight: 1}
	g := httpGate(t, config)
	old := rejectedBy(g, RejectedBusy)
	config.Refusal = Refusal{Status: 429, HideReason: true, RetryAfter: RetryAfter{Fixed: 7 * time.Second}}
	if err := g.Reconfigure(config); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Refuse(w, httptest.NewRequest("GET", "/", nil), old) // made before, answered after
	body := parseRefusal(t, w.Body.Bytes())
	if w.Code != 429 || body.Reason != "" || w.Header().Get("Retry-After") != "7" {
		t.Errorf("%d %v %+v", w.Code, w.Header(), body)
	}
}
