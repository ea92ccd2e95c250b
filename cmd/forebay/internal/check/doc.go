// Package check judges a sound configuration: whether what it says can work in the
// world that it stands in. It says which links of the timeout chain hold, whether
// the gates fit into what the backend has, and which gates and routes do nothing.
//
//	for _, f := range check.Check(c) {
//		fmt.Println(f)
//	}
//
// What it cannot know it calls unknown, never ok. [CheckStore] judges what was seen of
// the store of a cluster. [Explain] says what one request would meet, and why. Nothing
// is dialled, read or changed.
package check
