package promgate

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// otherLabel is shared by the values that get no label of their own.
	otherLabel = "other"
	// maxLabelBytes is far above any pattern that somebody wrote, and keeps what a
	// caller can send from filling the memory of whoever scrapes.
	maxLabelBytes = 512
)

// table keeps something for each value of a label, and is bounded: values that
// come once it is full, or are too long, share what is kept for [otherLabel].
//
// Looking up takes no lock. Values are few and come early, so the map is copied
// for each new one, and a full table turns strangers away without a lock too.
type table[V any] struct {
	max    int
	create func(label string) *V
	other  func() *V // made when first needed: most tables never overflow

	known atomic.Pointer[map[string]*V] // never changed, only replaced
	mu    sync.Mutex                    // guards replacing it
}

func newTable[V any](limit int, create func(label string) *V) *table[V] {
	t := &table[V]{max: limit, create: create}
	t.other = sync.OnceValue(func() *V { return create(otherLabel) })
	t.known.Store(&map[string]*V{})
	return t
}

// get returns what is kept for value.
func (t *table[V]) get(value string) *V {
	known := *t.known.Load()
	if v := known[value]; v != nil {
		return v
	}
	if len(known) >= t.max || len(value) > maxLabelBytes {
		return t.other()
	}
	return t.add(value, t.max)
}

// keep returns what is kept for value itself, full or not.
func (t *table[V]) keep(value string) *V { return t.add(value, math.MaxInt) }

func (t *table[V]) add(value string, limit int) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := *t.known.Load()
	if v := known[value]; v != nil {
		return v // somebody else was faster
	}
	if len(known) >= limit {
		return t.other()
	}
	value = strings.Clone(value) // it may be a piece of a whole request
	v := t.create(strings.ToValidUTF8(value, "\uFFFD"))
	next := maps.Clone(known)
	next[value] = v
	t.known.Store(&next)
	return v
}
