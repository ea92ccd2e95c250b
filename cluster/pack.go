package cluster

import (
	"errors"
	"strconv"
	"strings"
)

// packed is values in the binary form that the script's language can read and write
// fastest: MessagePack, of which it takes integers, strings and lists. Each value is as
// short as it can be.
type packed []byte

func (p *packed) int(n int64) {
	switch b := *p; {
	case n >= 0 && n < 1<<7 || n < 0 && n >= -1<<5:
		*p = append(b, byte(n))
	case n < 0 && n >= -1<<7:
		*p = append(b, 0xd0, byte(n))
	case n < 0 && n >= -1<<15:
		*p = append(b, 0xd1, byte(n>>8), byte(n))
	case n < 0 && n >= -1<<31:
		*p = append(b, 0xd2, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	case n < 0:
		*p = append(append(b, 0xd3), big(uint64(n))...)
	case n < 1<<8:
		*p = append(b, 0xcc, byte(n))
	case n < 1<<16:
		*p = append(b, 0xcd, byte(n>>8), byte(n))
	case n < 1<<32:
		*p = append(b, 0xce, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	default:
		*p = append(append(b, 0xcf), big(uint64(n))...)
	}
}

func big(n uint64) []byte {
	return []byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func (p *packed) ints(values ...int64) {
	for _, n := range values {
		p.int(n)
	}
}

func (p *packed) flag(on bool) {
	if on {
		p.int(1)
	} else {
		p.int(0)
	}
}

func (p *packed) str(s string) {
	n := len(s)
	switch {
	case n < 1<<5:
		*p = append(*p, 0xa0|byte(n))
	case n < 1<<8:
		*p = append(*p, 0xd9, byte(n))
	case n < 1<<16:
		*p = append(*p, 0xda, byte(n>>8), byte(n))
	default:
		*p = append(*p, 0xdb, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	*p = append(*p, s...)
}

// list begins a list of n values.
func (p *packed) list(n int) {
	switch {
	case n < 1<<4:
		*p = append(*p, 0x90|byte(n))
	case n < 1<<16:
		*p = append(*p, 0xdc, byte(n>>8), byte(n))
	default:
		*p = append(*p, 0xdd, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
}

// slots are a list of numbers and fences.
func (p *packed) slots(slots []Slot) {
	p.list(2 * len(slots))
	for _, s := range slots {
		p.int(int64(s.Number))
		p.str(fenceText(s.Fence))
	}
}

// fenceBits are the low bits of a fence, which count grants; the rest is an epoch. The
// two stand apart on the wire, because numbers are floating-point ones in the script.
const fenceBits = 20

func fenceText(fence uint64) string {
	return strconv.FormatUint(fence>>fenceBits, 10) + "." + strconv.FormatUint(fence&(1<<fenceBits-1), 10)
}

func parseFence(s string) (uint64, error) {
	epoch, count, _ := strings.Cut(s, ".")
	e, err := strconv.ParseUint(epoch, 10, 64-fenceBits)
	c, err2 := strconv.ParseUint(count, 10, fenceBits)
	return e<<fenceBits + c, errors.Join(err, err2)
}

// unpacker reads packed values one after the other; the first mistake is kept, and
// what follows it reads as zero.
type unpacker struct {
	rest string
	err  error
}

func unpack(s string) *unpacker { return &unpacker{rest: s} }

var errPacked = errors.New("it is cut short, or something else")

// take returns the next n bytes.
func (u *unpacker) take(n int) string {
	if n < 0 || n > len(u.rest) {
		u.err, u.rest = errPacked, ""
	}
	if u.err != nil {
		return ""
	}
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

// number reads n bytes as a number.
func (u *unpacker) number(n int) (v uint64) {
	for _, b := range []byte(u.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (u *unpacker) int64() int64 {
	switch kind := byte(u.number(1)); {
	case kind < 1<<7 || kind >= 0xe0:
		return int64(int8(kind))
	case kind == 0xcc, kind == 0xcd, kind == 0xce, kind == 0xcf:
		return int64(u.number(1 << (kind - 0xcc)))
	case kind == 0xd0:
		return int64(int8(u.number(1)))
	case kind == 0xd1:
		return int64(int16(u.number(2)))
	case kind == 0xd2:
		return int64(int32(u.number(4)))
	case kind == 0xd3:
		return int64(u.number(8))
	}
	u.err = errPacked
	return 0
}

func (u *unpacker) int() int { return int(u.int64()) }

func (u *unpacker) uint() uint64 { return uint64(u.int64()) }

func (u *unpacker) flag() bool { return u.int64() != 0 }

func (u *unpacker) str() string {
	switch kind := byte(u.number(1)); {
	case kind&0xe0 == 0xa0:
		return u.take(int(kind & 0x1f))
	case kind == 0xd9, kind == 0xda, kind == 0xdb:
		return u.take(int(u.number(1 << (kind - 0xd9))))
	}
	u.err = errPacked
	return ""
}

// list reads how many values a list has. It cannot have more than there are bytes left.
func (u *unpacker) list() (n int) {
	switch kind := byte(u.number(1)); {
	case kind&0xf0 == 0x90:
		n = int(kind & 0x0f)
	case kind == 0xdc, kind == 0xdd:
		n = int(u.number(2 << (kind - 0xdc)))
	default:
		u.err = errPacked
	}
	if n > len(u.rest) {
		u.err = errPacked
	}
	if u.err != nil {
		return 0
	}
	return n
}

func (u *unpacker) slots() (slots []Slot) {
	for n := u.list(); n > 1; n -= 2 {
		number := u.int()
		fence, err := parseFence(u.str())
		if u.err == nil {
			u.err = err
		}
		slots = append(slots, Slot{Number: number, Fence: fence})
	}
	return slots
}

// end returns the first mistake.
func (u *unpacker) end() error {
	if u.err == nil && u.rest != "" {
		return errPacked
	}
	return u.err
}
