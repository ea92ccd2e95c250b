// Package lint polices this repository. It holds tests only: each rule is a
// function from a source tree to findings, is run on the repository by
// TestRepository, and is shown to fail on a small bad tree by TestRulesBite.
//
// To add a rule, write the function, add it to the rules table and add a tree
// that breaks it to the bites table; TestEveryRuleBites fails until both exist.
// The generated list of outside names, docs/names.md, is rewritten by
//
//	go test ./internal/lint -run TestRepository -update
//
// The command in mutate removes each release site of the library in turn and
// demands that some test fails.
package lint
