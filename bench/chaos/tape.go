//go:build linux

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// tape is what one worker writes down: an append-only file in shared memory. What is
// written is there at once, for every process, and survives the death of the writer,
// however sudden; nothing is on its way when a worker is killed.
type tape struct {
	memory []byte
	head   *head
	room   uint64
}

// head is at the beginning of a tape.
type head struct {
	next atomic.Uint64 // records begun
	done atomic.Uint64 // holds that ended well, for whoever watches a run
	_    [6]uint64
}

// words is a record as it lies on the tape. The first word is written last: a record
// of a writer that was killed half way has none, and does not count.
type words struct {
	first                    atomic.Uint64
	at, lease, number, value uint64
	_                        uint64
}

const (
	headBytes   = 64
	recordBytes = 48
)

// kind is what a record tells.
type kind uint8

const (
	started  kind = 1 + iota // a request begins; value is its patience
	refused                  // it ended without a slot; how is an outcome
	entered                  // it has a slot, and works from now on
	left                     // the work ended, and the slot is given back after this; how is an outcome
	touched                  // the resource accepted the fence in value for slot number
	rejected                 // the resource refused it
	late                     // a timer of this process rang late, by value nanoseconds
)

// outcome is how a request or a hold ended.
type outcome uint8

const (
	full   outcome = 1 + iota // no slot within the patience, or no place in line
	failed                    // the store could not be asked, or the policy refuses
	broken                    // an error that no gate should give
	done                      // the work is done
	lost                      // the lease was lost, and the work ended for that
	ended                     // the process ends, and takes the work along
)

func (o outcome) String() string {
	return [...]string{"not decided", "refused", "refused without the store", "broken", "served", "lost", "ended"}[o]
}

// record is one entry of a tape.
type record struct {
	kind   kind
	how    outcome
	cost   int
	caller int
	at     instant
	lease  uint64 // of the worker's requests, which one
	number uint64
	value  uint64
}

// newTape makes a tape with room for so many records. The file takes space only as it
// is written to.
func newTape(path string, records int) (*tape, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(headBytes + records*recordBytes)); err != nil {
		return nil, err
	}
	return mapTape(f)
}

// openTape opens the tape that another process made.
func openTape(path string) (*tape, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapTape(f)
}

func mapTape(f *os.File) (*tape, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return &tape{
		memory: memory,
		head:   (*head)(unsafe.Pointer(&memory[0])),
		room:   uint64(len(memory)-headBytes) / recordBytes,
	}, nil
}

func (t *tape) close() error { return syscall.Munmap(t.memory) }

func (t *tape) record(i uint64) *words {
	return (*words)(unsafe.Pointer(&t.memory[headBytes+i*recordBytes]))
}

// write appends a record. A tape that is full ends the worker: a run of which
// something is missing says nothing.
func (t *tape) write(r record) {
	i := t.head.next.Add(1) - 1
	if i >= t.room {
		panic("chaos: the tape is full")
	}
	w := t.record(i)
	w.at, w.lease, w.number, w.value = uint64(r.at), r.lease, r.number, r.value
	w.first.Store(uint64(r.kind) | uint64(r.how)<<8 | uint64(r.cost)<<16 | uint64(r.caller)<<32)
	if r.kind == left && r.how == done {
		t.head.done.Add(1)
	}
}

// read returns the records that are whole, in the order in which they were begun.
func (t *tape) read() []record {
	n := min(t.head.next.Load(), t.room)
	all := make([]record, 0, n)
	for i := range n {
		w := t.record(i)
		first := w.first.Load()
		if first == 0 {
			continue
		}
		all = append(all, record{
			kind: kind(first), how: outcome(first >> 8), cost: int(uint16(first >> 16)), caller: int(first >> 32),
			at: instant(w.at), lease: w.lease, number: w.number, value: w.value,
		})
	}
	return all
}
