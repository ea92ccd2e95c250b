package forebay

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

func wantBytes(t testing.TB, b *Bytes, held int64) {
	t.Helper()
	if st := b.Stats(); st.Held != held {
		t.Errorf("%d bytes held, want %d", st.Held, held)
	}
}

func TestBytesAreExact(t *testing.T) {
	b := NewBytes(100)
	one, other := b.Held(), b.Held()
	if !one.Grow(60) || other.Grow(41) || !other.Grow(40) || one.Grow(1) {
		t.Error("60 + 40 fit into 100, and nothing more")
	}
	wantBytes(t, b, 100)
	one.Shrink(10)
	if other.Size() != 40 || one.Size() != 50 || !other.Grow(10) {
		t.Errorf("sizes %d and %d", one.Size(), other.Size())
	}
	one.Release()
	one.Release() // does nothing
	wantBytes(t, b, 50)
	other.Shrink(1000) // no more than is held
	wantBytes(t, b, 0)
	if st := b.Stats(); st != (BytesStats{Limit: 100, Peak: 100, Refused: 2}) {
		t.Errorf("%+v", st)
	}
}

func TestBytesLimitMoves(t *testing.T) {
	b := NewBytes(10)
	h := b.Held()
	h.Grow(10)
	b.SetLimit(5)
	h.Shrink(5)
	if h.Grow(1) {
		t.Error("5 of 5 are held, and one more was given")
	}
	h.Shrink(1)
	if !h.Grow(1) || h.Grow(0) != true {
		t.Error("one fits, and nothing always does")
	}
	b.SetLimit(math.MaxInt64)
	if !h.Grow(math.MaxInt64-5) || h.Grow(1) {
		t.Error("sums overflow")
	}
	h.Release()
	wantBytes(t, b, 0)
}

func TestBytesOfNobody(t *testing.T) {
	var h Held
	if h.Grow(1) {
		t.Error("the zero Held holds something")
	}
	h.Shrink(1)
	h.Release()
	none := (&Bytes{}).Held()
	if none.Grow(1) {
		t.Error("the zero Bytes has room")
	}
}

func TestBytesMisuse(t *testing.T) {
	h := NewBytes(1).Held()
	for name, f := range map[string]func(){
		"limit": func() { NewBytes(-1) }, "grow": func() { h.Grow(-1) }, "shrink": func() { h.Shrink(-1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Many hold and give back at random: never more than the limit, nothing left over.
func TestBytesUnderContention(t *testing.T) {
	const limit = 1000
	b := NewBytes(limit)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			h := b.Held()
			defer h.Release()
			for range 5000 {
				switch random.IntN(3) {
				case 0:
					h.Grow(random.Int64N(300))
				case 1:
					h.Shrink(random.Int64N(300))
				default:
					h.Release()
				}
				if st := b.Stats(); st.Held < 0 || st.Held > limit || h.Size() < 0 {
					t.Errorf("%+v, own %d", st, h.Size())
					return
				}
			}
		})
	}
	all.Wait()
	if st := b.Stats(); st.Held != 0 || st.Peak > limit || st.Peak == 0 || st.Refused == 0 {
		t.Errorf("%+v", st)
	}
}

func TestBytesAllocateNothing(t *testing.T) {
	b := NewBytes(1 << 20)
	if n := testing.AllocsPerRun(100, func() {
		h := b.Held()
		h.Grow(1000)
		h.Shrink(1)
		h.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
