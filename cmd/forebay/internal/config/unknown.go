package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// laterKeys come with later versions, and are refused by name: an operator who took
// them from newer documentation learns that the version is wrong, not the spelling.
var laterKeys = map[string][]string{
	"gates.NAME": {"max_bytes", "cost"},
}

// otherWords are what other programs call our keys.
var otherWords = map[string]string{
	"limit": "max_in_flight", "concurrency": "max_in_flight", "max_concurrent": "max_in_flight",
	"max_concurrency": "max_in_flight", "max_inflight": "max_in_flight", "slots": "max_in_flight",
	"queue": "max_waiting", "queue_size": "max_waiting", "max_queue": "max_waiting",
	"rate": "min_rate", "min_upload_rate": "min_rate", "wait": "max_wait", "queue_timeout": "max_wait", "wait_timeout": "max_wait", "patience": "max_wait",
	"per_client": "per_caller", "per_ip": "per_caller", "limit_conn": "per_caller",
	"priority": "rank", "reserve": "reserved", "weight": "share", "max": "max_share", "class": "lane", "priorities": "lanes", "classes": "lanes",
	"idempotency_key": "key_header", "attempt": "attempt_header", "deadlines": "deadline", "retry": "retries",
	"path": "match", "pattern": "match", "route": "match", "limiter": "gate",
	"backend": "upstream", "proxy_pass": "upstream", "target": "upstream",
	"bind": "listen", "address": "listen", "port": "listen", "groups": "gates",
	"shutdown_timeout": "drain_timeout", "grace": "drain_timeout", "bypass": "exempt",
	"valkey": "redis", "store": "redis", "prefix": "name", "ttl": "lease", "fallback": "when_store_is_away",
	"proxy_protocols": "proxy_protocol", "accept_proxy": "proxy_protocol", "send_proxy": "proxy_protocol", "real_ip": "caller",
	"maxconn": "max", "worker_connections": "max", "ssl": "tls", "certificate": "cert_file", "send_timeout": "write",
	"logging": "log", "level": "decisions", "output": "to", "ip": "remote_ip",
}

// unknownKey says what is wrong with a key that its mapping does not have, and which
// one was probably meant ("" if there is no telling): another spelling, another
// word, another place.
func (d *decoder) unknownKey(level, path, name string, keys []key) (what, remedy, meant string) {
	what = fmt.Sprintf("unknown key %s", shorten(name))
	if path != "" {
		what += " in " + shorten(path)
	}
	if slices.Contains(laterKeys[level], name) {
		return fmt.Sprintf("this version does not know %s yet", name), "leave it out, or take a version that has it", ""
	}
	known := make([]string, len(keys))
	for i, k := range keys {
		known[i] = k.name
	}
	if near := d.nearest(name, known); near != "" {
		return what, fmt.Sprintf("did you mean %s?", near), near
	}
	if places := levelsOf(*d.kind.reference, name); len(places) > 0 {
		return what, fmt.Sprintf("%s belongs into %s", name, oneOf(places)), ""
	}
	return what, "the keys here are " + strings.Join(known, ", "), ""
}

// nearest is the function of that name while it is worth its time: of what comes
// after that many problems nothing is printed.
func (d *decoder) nearest(word string, known []string) string {
	if len(d.problems) > maxProblems {
		return ""
	}
	return nearest(word, known)
}

// nearest returns which of the known words was meant, "" if it is anybody's guess.
func nearest(word string, known []string) string {
	const longest = 40 // no known word is longer, and the distance costs the product
	if len(word) > longest {
		return ""
	}
	plain := plainWord(word)
	best, bestDistance := "", 1+min(len(plain)/2, max(2, len(plain)/3)) // the first below wins
	if len(plain) < 4 {
		bestDistance = 1 + len(plain)/3
	}
	consider := func(spelling, meant string) {
		if n := distance(plain, plainWord(spelling)); n < bestDistance {
			best, bestDistance = meant, n
		}
	}
	for _, k := range known {
		consider(k, k)
	}
	for _, spelling := range slices.Sorted(maps.Keys(otherWords)) {
		if meant := otherWords[spelling]; slices.Contains(known, meant) {
			consider(spelling, meant)
		}
	}
	return best
}

// plainWord is what is left of a name when case and separators do not count.
func plainWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance is Levenshtein's: how many characters to add, drop or replace, with two
// neighbours swapped counted as one.
func distance(a, b string) int {
	before, last, row := []int{}, make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
