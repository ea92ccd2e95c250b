package promgate

import (
	"fmt"
	"sync"
	"testing"
)

// However many come at once, a table keeps no more than it may, one thing for
// each value.
func TestTableIsBounded(t *testing.T) {
	const limit = 20
	made := map[string]int{}
	var mu sync.Mutex
	tab := newTable(limit, func(label string) *int {
		mu.Lock()
		defer mu.Unlock()
		made[label]++
		return new(int)
	})
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := range 100 {
				tab.get(fmt.Sprint(i * (caller%2 + 1)))
			}
		})
	}
	wg.Wait()
	if n := len(*tab.known.Load()); n != limit {
		t.Errorf("%d values kept, want %d", n, limit)
	}
	for label, n := range made {
		if n != 1 {
			t.Errorf("%q was made %d times", label, n)
		}
	}
	if tab.get("late") != tab.get("later") || tab.get("late") != tab.other() {
		t.Error("two values too many do not share the other's")
	}
	if tab.add("raced", limit) != tab.other() {
		t.Error("a value that came first and lost the race is kept")
	}
	if tab.keep("watched") == tab.other() || tab.get("watched") != tab.keep("watched") {
		t.Error("a value to keep is not kept")
	}
}

// Values that differ only in bytes that no label can have share a label; the
// vectors of Prometheus then give both the same series.
func TestTableMakesLabels(t *testing.T) {
	var labels []string
	tab := newTable(10, func(label string) *int {
		labels = append(labels, label)
		return new(int)
	})
	tab.get("a\xff")
	tab.get("a\xfe")
	if len(labels) != 2 || labels[0] != "a\uFFFD" || labels[1] != labels[0] {
		t.Errorf("labels %q", labels)
	}
}
