package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// maxBody is what a request may send: far above three fields.
const maxBody = 4 << 10

// noBody reads a request that has nothing to say, or answers that it has.
func noBody(w http.ResponseWriter, r *http.Request) bool {
	if n, _ := io.ReadFull(r.Body, make([]byte, 1)); n > 0 {
		answer(w, r, http.StatusBadRequest, failure{Error: fmt.Sprintf("%s %s takes no body; leave it out", r.Method, r.URL.Path)})
		return false
	}
	return true
}

// readObject reads the fields of the JSON object that a request sends, or answers
// what is wrong with it: too long, no JSON, fields that are unknown or come twice.
func readObject(w http.ResponseWriter, r *http.Request, known ...string) (fields map[string]json.RawMessage, ok bool) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		answer(w, r, http.StatusUnsupportedMediaType, failure{Error: fmt.Sprintf("the content type is %q; it must be application/json", r.Header.Get("Content-Type"))})
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		answer(w, r, http.StatusRequestEntityTooLarge, failure{Error: fmt.Sprintf("the body is longer than %d bytes", maxBody)})
		return nil, false
	case err != nil:
		answer(w, r, http.StatusBadRequest, failure{Error: "the body ended too early"})
		return nil, false
	}
	fields, problems := parseObject(body, known)
	if len(problems) > 0 {
		answer(w, r, http.StatusBadRequest, failure{Error: "the body is not understood", Problems: problems})
		return nil, false
	}
	return fields, true
}

// parseObject is stricter than encoding/json, which takes a field in any case, and
// the last of two.
func parseObject(body []byte, known []string) (fields map[string]json.RawMessage, problems []string) {
	example := `send a JSON object like {"max_in_flight":4,"for":"15m","why":"the report server is slow"}`
	dec := json.NewDecoder(bytes.NewReader(body))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, []string{"it is not a JSON object; " + example}
	}
	fields = map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return nil, append(problems, "it is not JSON: "+err.Error()+"; "+example)
		}
		name, _ := key.(string) // within an object every other token is a name
		switch _, twice := fields[name]; {
		case twice:
			problems = append(problems, fmt.Sprintf("the field %q comes twice; send it once", name))
		case !slices.Contains(known, name):
			problems = append(problems, fmt.Sprintf("the field %q is unknown; the fields are %s", name, strings.Join(known, ", ")))
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, append(problems, "the JSON object does not end; "+example)
	}
	if _, err := dec.Token(); err != io.EOF {
		problems = append(problems, "something follows the JSON object; send one object only")
	}
	return fields, problems
}
