package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// asking is what every verb takes that asks a running forebay.
type asking struct {
	Admin     string        `default:"127.0.0.1:8081" help:"The address of the admin port of the running forebay. Default: ${default}."`
	TokenFile string        `help:"The file with the admin token, if there is one."`
	Timeout   time.Duration `default:"3s" help:"How long to wait for an answer. Default: ${default}."`
}

// answerError is an answer of the admin port that is no good one.
type answerError struct {
	status   int
	text     string   // what is wrong
	problems []string // one by one, where there are several
}

func (e answerError) Error() string {
	if len(e.problems) == 0 {
		return e.text
	}
	return e.text + "\n" + strings.Join(e.problems, "\n")
}

// ask sends a request to the admin port, with body as JSON unless it is nil, and returns
// the answer if it is a good one.
func (a asking) ask(method, path string, body any) ([]byte, error) {
	req, err := a.request(method, path, body)
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: a.Timeout}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = failureOf(res, got)
	}
	return got, err
}

func (a asking) request(method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, "http://"+strings.TrimPrefix(a.Admin, "http://")+path, sent)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.TokenFile != "" {
		token, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return req, nil
}

// failureOf reads what the admin port says is wrong.
func failureOf(res *http.Response, body []byte) error {
	var told struct {
		Error    string   `json:"error"`
		Problems []string `json:"problems"`
	}
	if json.Unmarshal(body, &told) != nil || told.Error == "" {
		return answerError{status: res.StatusCode, text: res.Status + ": " + strings.TrimSpace(string(body))}
	}
	return answerError{res.StatusCode, told.Error, told.Problems}
}

// failed tells why there is no answer; the answer is no.
func (a asking) failed(s streams, err error) error {
	var no answerError
	switch {
	case !errors.As(err, &no):
		err = hinted{err, "is forebay running, and is " + a.Admin + " its admin port?"}
	case no.status == http.StatusUnauthorized:
		err = hinted{err, "give the admin token with --token-file FILE"}
	}
	tell(s.err, err)
	return exit(exitNo)
}

// understand reads a good answer, or says that it is none of forebay's.
func (a asking) understand(s streams, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		fmt.Fprintf(s.err, "forebay: error: %s does not answer as forebay does: %v\n", a.Admin, err)
		return exit(exitNo)
	}
	return nil
}
