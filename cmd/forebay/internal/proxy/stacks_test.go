package proxy

import (
	"context"
	"runtime"
)

type ctxt = context.Context

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}
