package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `help:"As JSON."`
}

// Help is shown below the flags.
func (versionCmd) Help() string { return "Example:\n  forebay version --json" }

// Run prints the version.
func (c versionCmd) Run(s streams) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(v)
	}
	_, err := fmt.Fprintf(s.out, "forebay %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
	return err
}

// version is that of the module as it was built, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
