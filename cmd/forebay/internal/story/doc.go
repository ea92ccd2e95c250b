// Package story keeps what became of calls, so that one of them can be explained
// afterwards: which gate, what it decided and why, what the client was told, and who
// held the slots at that moment.
//
//	book := story.NewBook()
//	gate := forebay.Config{Observers: []forebay.Observer{book}, …}
//	book.Watch(routes, gates...)
//	told := book.Find("4bf92f35a1b2c3d4")
//
// # Ids
//
// Every story has an id of its own, which no client can choose. It is found by that, by
// the id of the request (the X-Request-Id of its answer), and by what the client itself
// called the request. The last two may be those of several calls: all of them are found,
// so nobody hides another's story by using its id.
//
// # What it costs
//
// Memory is bounded by [keptRefusals] and [keptOthers], 200 bytes each with the strings,
// and is taken as it is needed. A refusal costs a look at the clock, a lock and a copy;
// who holds the slots is looked up at most twenty times a second and gate. Any other call
// costs the lock and the copy, and no look at the clock: its time is that of the last
// [Book.Tick]. Words are made when somebody asks.
package story
