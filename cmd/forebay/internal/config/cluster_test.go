package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sharing = small + "cluster: {redis: %q, gates: [a]}\n"

// TestRedisForms: every form in which the client takes an address.
func TestRedisForms(t *testing.T) {
	for _, url := range []string{
		"redis://127.0.0.1", "redis://127.0.0.1:6379/3", "redis://redis.example", "redis://[::1]:6379",
		"redis://:s3cret@127.0.0.1:6379", "redis://forebay:p%40ss@127.0.0.1", "redis://forebay@127.0.0.1",
		"rediss://redis.example:6380?skip_verify=true", "valkey://127.0.0.1", "valkeys://127.0.0.1",
		"unix:///run/redis/redis.sock", "unix:///run/redis.sock?db=2", "unix://me:s3cret@/run/redis.sock",
		"redis://a:7000?addr=b:7000&addr=c:7000",
		"redis://a:26379/2?addr=b:26379&addr=c:26379&master_set=mymaster",
		"redis://127.0.0.1?db=1&client_name=forebay&dial_timeout=2s&write_timeout=2s&protocol=2",
	} {
		if got := mustParse(t, fmt.Sprintf(sharing, url)).Cluster.Redis; string(got) != url {
			t.Errorf("%s is read as %s", url, string(got))
		}
	}
}

// TestSecretsArePrintedNowhere: neither by the configuration in force nor by anything
// that prints values, and not by a mistake either.
func TestSecretsArePrintedNowhere(t *testing.T) {
	inText := mustParse(t, fmt.Sprintf(sharing, "redis://forebay:s3cret@127.0.0.1"))
	inFile := mustParse(t, small+"cluster: {redis_file: testdata/redis.url, gates: [a]}\n")
	withSentinels := mustParse(t, small+"cluster: {redis: 'redis://me:s3cret@127.0.0.1?master_set=m', sentinel_username: me, sentinel_password_file: testdata/admin.token, gates: [a]}\n")
	sentinels := withSentinels.Cluster.Sentinel
	if sentinels.Username != "me" || !strings.HasPrefix(string(sentinels.Password), "0123456789") {
		t.Errorf("the Sentinels' are %q, %q", sentinels.Username, string(sentinels.Password))
	}
	for _, c := range []*Config{inText, inFile, withSentinels} {
		if !strings.Contains(string(c.Cluster.Redis), "s3cret") || !c.Cluster.Redis.HasPassword() {
			t.Error("the password is lost")
		}
		var logged strings.Builder
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "redis", c.Cluster.Redis, "cluster", c.Cluster)
		asJSON, err := json.Marshal(c.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range []string{
			c.YAML(), fmt.Sprint(c.Cluster), fmt.Sprintf("%+v", *c.Cluster), fmt.Sprintf("%#v", c.Cluster),
			fmt.Sprintf("%q", c.Cluster.Redis), fmt.Sprintf("%q", c.Cluster.Sentinel.Password), string(asJSON), logged.String(),
		} {
			if strings.Contains(said, "s3cret") || strings.Contains(said, "0123456789") {
				t.Errorf("the password is in %s", said)
			}
		}
	}
	for _, url := range []string{
		"redis://me:s3cret@h:99999", "redis://me:s3cret@h/x", "http://me:s3cret@h", "redis://:s3cret/x@h", "redis://:s3cret#@h",
		"redis://me:s3cret@", "redis://me:s3cret@h?x=1", "me:s3cret@h:6379", "redis://:s3cret",
	} {
		said := parseError(fmt.Sprintf(sharing, url))
		if said == "" || strings.Contains(said, "s3cret") {
			t.Errorf("of %s is said %s", url, said)
		}
	}
	if said := parseError(small + "cluster: {redis_file: testdata/bad.url, gates: [a]}\n"); said == "" || strings.Contains(said, "s3cret") {
		t.Errorf("of a bad file is said %s", said)
	}
}

// TestSecretsWithoutAPassword are shown as they are.
func TestSecretsWithoutAPassword(t *testing.T) {
	for _, url := range []Secret{"redis://127.0.0.1:6379/0", "unix:///run/redis.sock?db=1", "redis://a?addr=b:1&master_set=m"} {
		if url.String() != string(url) || url.HasPassword() {
			t.Errorf("%s is shown as %s", string(url), url)
		}
	}
	if got := Secret("redis://me:a@h").String(); got != "redis://me:PASSWORD@h" {
		t.Errorf("shown as %s", got)
	}
}

// TestPageOfClusters: the file that docs/cluster.md begins with is one.
func TestPageOfClusters(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if c := mustParse(t, text); !found || c.Gate("reports").Terms == nil {
		t.Errorf("the file shares nothing:\n%s", text)
	}
}
