package admin

import (
	"errors"
	"strings"
	"testing"

	"example.com/forebay"
)

const limitPath = "/gates/reports/max_in_flight"

func TestLimitIsChangedAndTakenBack(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	o := decoded[Override](t, ask(h, "PUT "+limitPath, `{"max_in_flight":4,"for":"15m","why":"the report server is slow"}`), 200)
	if o.MaxInFlight != 4 || o.Was != 2 || o.Why != "the report server is slow" || o.Until.Sub(o.Since).Minutes() != 15 {
		t.Errorf("override = %+v", o)
	}
	got := decoded[gateLimits](t, ask(h, "GET "+limitPath, ""), 200)
	if got.Limit != 4 || got.MaxInFlight != 2 || got.Override == nil || got.Override.Why != o.Why {
		t.Errorf("limits = %+v", got)
	}
	if all := decoded[programStats](t, ask(h, "GET /stats", ""), 200); len(all.Overrides) != 1 {
		t.Errorf("overrides in /stats = %+v", all.Overrides)
	}
	if got := decoded[gateLimits](t, ask(h, "DELETE "+limitPath, ""), 200); got.Limit != 2 || got.Override != nil {
		t.Errorf("taken back: %+v", got)
	}
	if w := ask(h, "DELETE "+limitPath, ""); w.Code != 404 || !strings.Contains(w.Body.String(), "nothing to take back") {
		t.Errorf("taken back twice: %d %s", w.Code, w.Body)
	}
	if o := decoded[Override](t, ask(h, "PUT "+limitPath, `{"max_in_flight":"closed"}`), 200); o.MaxInFlight != 0 || !o.Until.IsZero() {
		t.Errorf("closed: %+v", o)
	}
	refuse(t, p.gates[0])
}

func TestBadLimitsAreRefusedWithTheRemedy(t *testing.T) {
	long := strings.Repeat("x", maxWhy+1)
	for name, c := range map[string]struct {
		body   string
		status int
		want   []string // one for each problem
	}{
		"empty":              {`{}`, 400, []string{`max_in_flight is missing; it must be 1 to 1048575, or "closed"`}},
		"zero":               {`{"max_in_flight":0}`, 400, []string{`is 0; it must be 1 to 1048575, or "closed"`}},
		"negative":           {`{"max_in_flight":-1}`, 400, []string{`is -1; it must`}},
		"too many":           {`{"max_in_flight":1048576}`, 400, []string{`is 1048576; it must`}},
		"fraction":           {`{"max_in_flight":4.5}`, 400, []string{`is 4.5; it must`}},
		"exponent":           {`{"max_in_flight":1e3}`, 400, []string{`is 1e3; it must`}},
		"text":               {`{"max_in_flight":"4"}`, 400, []string{`is "4"; it must`}},
		"null":               {`{"max_in_flight":null}`, 400, []string{`is null; it must`}},
		"overflow":           {`{"max_in_flight":99999999999999999999999999999999999999999999}`, 400, []string{`is 9999999999999999999999999999999999999999…; it must`}},
		"for without unit":   {`{"max_in_flight":4,"for":"15"}`, 400, []string{`for is "15"; it must be a text with a unit`}},
		"for as a number":    {`{"max_in_flight":4,"for":15}`, 400, []string{`for is 15; it must be a text with a unit`}},
		"for null":           {`{"max_in_flight":4,"for":null}`, 400, []string{`for is null; it must`}},
		"for too short":      {`{"max_in_flight":4,"for":"15ms"}`, 400, []string{`for is "15ms"; it must`}},
		"for negative":       {`{"max_in_flight":4,"for":"-1h"}`, 400, []string{`for is "-1h"; it must`}},
		"for too long":       {`{"max_in_flight":4,"for":"9999h"}`, 400, []string{`for is "9999h"; it must`}},
		"why too long":       {`{"max_in_flight":4,"why":"` + long + `"}`, 400, []string{`why has 201 bytes; it must be one line of at most 200`}},
		"why of two lines":   {`{"max_in_flight":4,"why":"a\nb"}`, 400, []string{`it must be one line`}},
		"why as a number":    {`{"max_in_flight":4,"why":7}`, 400, []string{`why is 7; it must be a text`}},
		"by of two lines":    {`{"max_in_flight":4,"by":"a\nb"}`, 400, []string{`by has 3 bytes; it must be one line of at most 100`}},
		"several at once":    {`{"max_in_flight":0,"for":"x","why":null}`, 400, []string{"max_in_flight is 0", `for is "x"`, "why is null"}},
		"unknown field":      {`{"max_in_flight":4,"fro":"15m"}`, 400, []string{`the field "fro" is unknown; the fields are max_in_flight, for, why, by`}},
		"field in capitals":  {`{"MAX_IN_FLIGHT":4}`, 400, []string{`"MAX_IN_FLIGHT" is unknown`}},
		"field twice":        {`{"max_in_flight":4,"max_in_flight":5}`, 400, []string{`"max_in_flight" comes twice; send it once`}},
		"unknown and twice":  {`{"max_in_flight":4,"x":1,"x":2}`, 400, []string{`"x" is unknown`, `"x" comes twice`}},
		"array":              {`[4]`, 400, []string{"not a JSON object; send a JSON object like {"}},
		"bare number":        {`4`, 400, []string{"not a JSON object"}},
		"form":               {`max_in_flight=4`, 400, []string{"not a JSON object"}},
		"cut off":            {`{"max_in_flight":4`, 400, []string{"does not end"}},
		"cut off in a value": {`{"max_in_flight":`, 400, []string{"not JSON"}},
		"two objects":        {`{"max_in_flight":4}{}`, 400, []string{"something follows"}},
		"garbage behind":     {`{"max_in_flight":4} x`, 400, []string{"something follows"}},
		"too long":           {`{"why":"` + strings.Repeat("x", maxBody) + `"}`, 413, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, "reports")
			got := decoded[failure](t, ask(Handler(p, metricsHandler(), local), "PUT "+limitPath, c.body), c.status)
			if len(got.Problems) != len(c.want) || got.Error == "" {
				t.Fatalf("problems = %q, want %q", got.Problems, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(got.Problems[i], want) {
					t.Errorf("problem %d = %q, want %q", i, got.Problems[i], want)
				}
			}
			if len(p.overrides) != 0 || p.gates[0].Stats().Capacity != 2 {
				t.Error("the limit was changed")
			}
		})
	}
}

func TestContentTypeMustBeJSON(t *testing.T) {
	h := Handler(program(t, "reports"), metricsHandler(), local)
	for media, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "": 415, "application/json;;": 415, "application/json-patch+json": 415,
	} {
		if w := ask(h, "PUT "+limitPath, `{"max_in_flight":3}`, "Content-Type: "+media); w.Code != status {
			t.Errorf("%q: %d, want %d: %s", media, w.Code, status, w.Body)
		}
	}
}

func TestProgramMayRefuseALimit(t *testing.T) {
	p := program(t, "reports")
	p.setErr = errors.New("forebay: the gate has no such thing; use another")
	got := decoded[failure](t, ask(Handler(p, metricsHandler(), local), "PUT "+limitPath, `{"max_in_flight":3}`), 422)
	if len(got.Problems) != 1 || got.Problems[0] != p.setErr.Error() {
		t.Errorf("answer = %+v", got)
	}
}

func TestGatesShowConfigurationAndLimit(t *testing.T) {
	p := &fakeProgram{gates: []*forebay.Gate{
		newGate(t, forebay.Config{Name: "reports", MaxInFlight: 4, MaxWait: 100e6, MaxWaiting: 8}),
		newGate(t, forebay.Config{Name: "ops"}),
	}}
	if err := p.gates[1].SetLimit(0); err != nil {
		t.Fatal(err)
	}
	type list struct {
		Gates []gateLimits `json:"gates"`
	}
	got := decoded[list](t, ask(Handler(p, metricsHandler(), local), "GET /gates", ""), 200).Gates
	if len(got) != 2 || got[0] != (gateLimits{Name: "reports", MaxInFlight: 4, Limit: 4, MaxWaitMS: 100, MaxWaiting: 8}) || got[1].Limit != 0 || got[1].MaxInFlight != 2 {
		t.Errorf("gates = %+v", got)
	}
}

// Who changes a limit is asked and not checked; of whom nothing is said the address is.
func TestWhoChangesALimit(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	if o := decoded[Override](t, ask(h, "PUT "+limitPath, `{"max_in_flight":4,"by":"ann@web1"}`), 200); o.By != "ann@web1" {
		t.Errorf("by %q", o.By)
	}
	ask(h, "DELETE "+limitPath, "")
	if o := decoded[Override](t, ask(h, "PUT "+limitPath, `{"max_in_flight":4}`), 200); o.By != "192.0.2.1" {
		t.Errorf("by %q, want the address", o.By)
	}
	for want, body := range map[string]string{
		`"max_in_flight\" is unknown; the fields are why, by`: `{"max_in_flight":4}`,
		`by is 7; it must be a text`:                          `{"by":7}`,
	} {
		if w := ask(h, "DELETE "+limitPath, body); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("DELETE with %s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := ask(h, "DELETE "+limitPath, `{"why":"over","by":"ann"}`); w.Code != 200 || len(p.Overrides()) != 0 {
		t.Errorf("DELETE with a reason: %d %s", w.Code, w.Body)
	}
}
