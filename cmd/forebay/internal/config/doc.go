// Package config reads what an operator wrote: strictly, with a place for every
// mistake, and with all mistakes at once.
//
//	c, err := config.Load("forebay.yaml")
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err) // forebay.yaml:7:5: unknown key "max_inflight"; did you mean max_in_flight?
//		os.Exit(2)
//	}
//	gates, groups, err := c.Build(observer)
//
// A [Config] holds effective values, defaults filled in, and is plain data: nothing
// starts, listens or dials. Besides the file itself only those that it names are read:
// tokens, passwords, certificates. Functions of this package keep no state and are safe
// for concurrent use; a Config is, as long as nobody changes it.
//
// It does not judge whether sound values make sense together with the world around:
// package check does.
//
// The YAML parser is go.yaml.in/yaml/v4: it is the one that the YAML organisation
// itself maintains (the successor of gopkg.in/yaml.v3, which is archived; its v3 gets
// security fixes only), gives line and column of every node and of every syntax
// error, and bounds nesting. github.com/goccy/go-yaml gives positions as well, but
// its releases have become rare and its parser has a history of panics under fuzzing.
// Only the parser is used: what a value may look like is decided here.
package config
