package main

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// host says where and of what a run was made.
type host struct {
	goVersion, platform, cpu string
	cores                    int
	modules                  []string // "path version"
}

func (s *suite) thisHost() host {
	h := host{
		goVersion: runtime.Version(), platform: runtime.GOOS + "/" + runtime.GOARCH,
		cpu: cpuModel("/proc/cpuinfo"), cores: runtime.NumCPU(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(s.modules, m.Path) {
				h.modules = append(h.modules, m.Path+" "+m.Version)
			}
		}
	}
	return h
}

// cpuModel reads the processor's name where Linux keeps it.
func cpuModel(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// commandLine is how to run the same again, from the root of the repository.
func (s *suite) commandLine(args []string) string {
	words := []string{"cd bench && go run . " + s.name}
	for _, a := range args {
		if strings.ContainsAny(a, " |*?()[]$^.\\\"'") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
