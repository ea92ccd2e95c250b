//go:build linux

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// resource is what holders of numbered slots work on: it keeps the highest fence that
// it has seen of each number, and refuses lower ones. It lies in memory that all
// workers share, and works without any of them being awake.
type resource struct{ highest []atomic.Uint64 }

// numbers is how many slots a resource knows.
const numbers = 512

func newResource(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(numbers * 8)
}

// openResource maps the resource; "" is none.
func openResource(path string) (*resource, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	memory, err := syscall.Mmap(int(f.Fd()), 0, numbers*8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &resource{unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&memory[0])), numbers)}, nil
}

// accept says whether the resource does what the holder of a fence asks for.
func (r *resource) accept(f *fence) bool {
	h := &r.highest[f.number%numbers]
	for {
		seen := h.Load()
		if f.fence < seen {
			return false
		}
		if f.fence == seen || h.CompareAndSwap(seen, f.fence) {
			return true
		}
	}
}
