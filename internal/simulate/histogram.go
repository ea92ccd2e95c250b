package simulate

import (
	"math/bits"
	"time"
)

// histogram counts times in buckets that are at most 1.6 % wide.
type histogram struct {
	buckets []uint32
	count   uint64
	sum     time.Duration
}

const fine = 6 // buckets that halve one power of two: 2^fine

func (h *histogram) add(d time.Duration) {
	i := bucket(max(d, 0))
	for i >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, i+64-len(h.buckets))...)
	}
	h.buckets[i]++
	h.count++
	h.sum += d
}

func bucket(d time.Duration) int {
	n := bits.Len64(uint64(d))
	if n <= fine {
		return int(d)
	}
	shift := n - fine - 1
	return (shift+1)<<fine + int(uint64(d)>>shift)&(1<<fine-1)
}

// upTo returns the greatest time of a bucket.
func upTo(i int) time.Duration {
	if i < 1<<fine {
		return time.Duration(i)
	}
	shift := i>>fine - 1
	return time.Duration(uint64(i&(1<<fine-1)|1<<fine)+1)<<shift - 1
}

// quantile returns the time that a part q of all do not exceed; 0 without any.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	var seen uint64
	for i, n := range h.buckets {
		if seen += uint64(n); n > 0 && seen > min(rank, h.count-1) {
			return upTo(i)
		}
	}
	return 0
}

func (h *histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// merge adds another one's counts.
func (h *histogram) merge(o *histogram) {
	for len(h.buckets) < len(o.buckets) {
		h.buckets = append(h.buckets, 0)
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
	h.sum += o.sum
}
