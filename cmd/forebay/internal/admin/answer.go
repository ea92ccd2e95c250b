package admin

import (
	"encoding/json"
	"net/http"
)

// failure is what every answer but a good one looks like.
type failure struct {
	Error     string   `json:"error"`
	Problems  []string `json:"problems,omitempty"`
	Gates     []string `json:"gates,omitempty"`
	Endpoints []string `json:"endpoints,omitempty"`
}

// answer writes v as JSON, to HEAD without a body.
func answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // of numbers, strings and times there is none
		panic("admin: an answer that is no JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // who asked may have left
	}
}
