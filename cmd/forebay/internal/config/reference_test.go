package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var docs = filepath.Join("..", "..", "..", "..", "docs")

// TestReferenceIsUpToDate compares docs/config.md and docs/scenarios.md with what the
// code says; -update rewrites them.
func TestReferenceIsUpToDate(t *testing.T) {
	upToDate(t, filepath.Join(docs, "config.md"), Reference())
	upToDate(t, filepath.Join(docs, "scenarios.md"), ScenarioReference())
}

func upToDate(t *testing.T, referenceFile, want string) {
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says; run go generate", referenceFile)
	}
	if strings.Contains(want, "\n## \n") {
		t.Errorf("%s has keys without a heading; name their mapping in headings", referenceFile)
	}
}

// TestReferenceKnowsTheKeys: the table and the reader have the same keys. What the
// reader has it lists when it meets a key that is nothing like any of them.
func TestReferenceKnowsTheKeys(t *testing.T) {
	for path, file := range places {
		said := parseError(fmt.Sprintf(file, "zzzzzzzzzzzz: 1"))
		_, list, found := strings.Cut(strings.Split(said, "\n")[0], "the keys here are ")
		if !found {
			t.Errorf("%s: %s", path, said)
			continue
		}
		got := strings.Split(list, ", ")
		var want []string
		for _, k := range reference {
			level := k.Name
			for level != "" { // the key itself, or the mapping that it stands in
				parent, last := "", level
				if i := strings.LastIndexByte(level, '.'); i >= 0 {
					parent, last = level[:i], level[i+1:]
				}
				last = strings.TrimSuffix(last, "[]")
				if parent == levelOfPath(path) && last != "NAME" && !slices.Contains(want, last) {
					want = append(want, last)
				}
				level = parent
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: the reader has %v, the reference %v", path, got, want)
		}
	}
}

// TestReferenceExamples: each example is accepted where it belongs, and so is the
// whole file.
func TestReferenceExamples(t *testing.T) {
	mustParse(t, Example)
	for _, k := range reference {
		name := strings.ReplaceAll(k.Name, "pools.NAME", "pools.db")
		text := fmt.Sprintf("%s: %s", name[strings.LastIndexByte(name, '.')+1:], k.Example)
		var file string
		switch level := k.level(); {
		case k.Name == "upstream":
			file = strings.Replace(small, "upstream: http://127.0.0.1:8000", text, 1)
		case k.Name == "gates.NAME.max_in_flight":
			file = strings.Replace(small, "max_in_flight: 4", text, 1)
		case k.Name == "gates.NAME.max_waiting":
			file = strings.Replace(small, "4}", "4, max_wait: 5ms, "+text+"}", 1)
		case k.Name == "gates.NAME.upload.grace":
			file = strings.Replace(small, "4}", "4, upload: {min_rate: 1KiB, "+text+"}}", 1)
		case k.Name == "gates.NAME.pool":
			file = strings.Replace(small, "4}", "4, "+text+"}", 1) + "pools: {db: 20}\n"
		case k.Name == "admin.token_file":
			file = small + "admin: {token_file: testdata/admin.token}\n" // its own is not on this machine
		case k.Name == "admin.listen":
			file = small + "admin: {token_file: testdata/admin.token, " + text + "}\n"
		case k.Name == "log.max_size" || k.Name == "log.keep":
			file = small + "log: {to: /x.log, " + text + "}\n"
		case k.Name == "spool.directory":
			file = small + "spool: {" + text + "}\n"
		case k.Name == "gates.NAME.per_caller.max_in_flight":
			file = strings.Replace(small, "4}", "4, per_caller: {"+text+"}}", 1)
		case k.Name == "lanes.NAME.rank":
			file = small + "lanes: {x: {" + text + "}}\n"
		case k.Name == "routes[].lane":
			file = strings.Replace(small, "gate: a", "gate: a, "+text, 1) + "lanes: {" + k.Example + ": {rank: 1}}\n"
		case k.Name == "gates.NAME.refuse.body.file":
			file = strings.Replace(small, "4}", "4, refuse: {body: {"+text+"}}}", 1)
		case level == "gates.NAME.refuse.cors":
			file = strings.Replace(small, "4}", "4, refuse: {cors: {"+text+"}}}", 1)
			if k.Name != "gates.NAME.refuse.cors.origins" {
				file = strings.Replace(file, "cors: {", "cors: {origins: ["+exampleOrigin+"], ", 1)
			}
		case strings.HasPrefix(k.Name, "tls."):
			continue // the files are not on this machine; TestTLS makes some
		case k.Name == "pools.NAME":
			file = small + "pools: {" + text + "}\n"
		case k.Name == "cluster.redis":
			file = small + "cluster: {gates: [a], " + text + "}\n"
		case k.Name == "cluster.redis_file":
			file = small + "cluster: {gates: [a], redis_file: testdata/redis.url}\n" // its own is not on this machine
		case k.Name == "cluster.sentinel_username" || k.Name == "cluster.sentinel_password_file":
			file = small + "cluster: {gates: [a], redis: 'redis://127.0.0.1?master_set=m', sentinel_password_file: testdata/admin.token"
			if !strings.HasSuffix(k.Name, "_file") { // its own is not on this machine
				file += ", " + text
			}
			file += "}\n"
		case level == "cluster.tls":
			continue // TestRedisTLS has files of its own
		case k.Name == "cluster.gates":
			file = strings.Replace(small, "{a:", "{reports: {max_in_flight: 1}, a:", 1) + "cluster: {redis: redis://127.0.0.1, " + text + "}\n"
		case k.Name == "routes[].match":
			file = strings.Replace(small, "[{", "[{"+text+", gate: a}, {", 1)
		case k.Name == "routes[].cost":
			file = strings.Replace(small, "gate: a", "gate: a, "+text, 1)
		case level == "routes[]":
			file = strings.Replace(small, "{a:", "{reports: {max_in_flight: 1}, orders: {max_in_flight: 1}, a:", 1)
			file = strings.Replace(file, "[{", "[{match: /x, "+text+"}, {", 1)
		default:
			for path, place := range places {
				if levelOfPath(path) == level {
					file = fmt.Sprintf(place, text)
				}
			}
		}
		if said := parseError(file); said != "" {
			t.Errorf("%s: the example is refused: %s\n%s", k.Name, said, file)
		}
	}
}
