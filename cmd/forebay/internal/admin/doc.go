// Package admin answers on the admin port: what the gates do, and how to change it.
//
// [Handler] stands on a listener of its own, passes no gate, and so answers while
// everything else is full. It asks each gate for one picture, which is a short lock
// of the gate, and never waits for a request.
//
// # Who is served
//
// With a token everybody who sends it ("Authorization: Bearer …"), and without it
// only /health and /ready, which then say no more than the status. Without a token
// only on loopback, and only under a name of this machine: a page in a browser that
// has its own name point to 127.0.0.1 is refused. Elsewhere without a token only
// /health and /ready are served. What a page of another origin sends is refused in
// any case, reads apart, which no other origin can see the answer of.
//
// # What the answers are like
//
// JSON, never cached, one object with a newline. An error has "error", what is wrong
// and what would be right, and where there are several mistakes "problems" with all
// of them. HEAD works wherever GET does.
//
// # What it does not do
//
// Time limits are the server's. It keeps no record of who changed what; the program
// logs changes.
package admin
