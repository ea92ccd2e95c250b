package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// peak asks the shop how many requests it had inside at most since the last time.
func peak(ctx context.Context, url string) (orders, reports int, err error) {
	var info struct {
		Requests map[string]struct {
			Peak int `json:"peak"`
		} `json:"requests"`
	}
	if err := ask(ctx, http.MethodGet, url+"/admin/info", &info); err != nil {
		return 0, 0, err
	}
	err = ask(ctx, http.MethodPost, url+"/admin/reset-peak", nil)
	return info.Requests["orders"].Peak, info.Requests["reports"].Peak, err
}

// ask sends a request and decodes the answer where one is wanted.
func ask(ctx context.Context, method, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", url, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
