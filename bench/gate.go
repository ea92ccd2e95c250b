package main

import "fmt"

// gateSuite compares the gate of one process.
var gateSuite = &suite{
	name: "gate", making: "bench-gate", document: "performance.md", title: "Performance",
	about: `All figures are of one run: everything in one process, in rounds
that take each contender in turn (A B C A B C …), so that noise of the machine hits all alike. A figure is the
median of its rounds; a ratio is taken within a round, and is the median of those. Ratios carry over to other
machines, nanoseconds do not.`,
	sections: []func(effort) (*section, error){
		pairSection, refuseSection, contendSection, holdSection, expireSection,
		handlerSection, wireSection, goodputSection,
	},
	modules: []string{
		"golang.org/x/sync", "github.com/go-chi/chi/v5",
		"github.com/failsafe-go/failsafe-go", "github.com/go-kratos/aegis",
	},
	work: func(e effort) string {
		return fmt.Sprintf("%d rounds of the tables of loops, %d of the others, %d of the last", e.loopRounds, e.rounds, e.loadRounds)
	},
	limits: []string{
		"The peers do other things: the semaphore has weights, failsafe-go composes policies, aegis adapts, chi is part of a router. A smaller figure is not a better library.",
		"forebay's gates here have no observers, no limiter and no chain. Observers and limiters take the gate's lock for every call, and what an observer does comes on top.",
		"Two processors. On many more, words that every core writes cost more than here, for everybody.",
		"A gate costs nanoseconds and a request microseconds to milliseconds: the first tables tell libraries apart, not servers. The last one does tell servers apart.",
		"The backend of the last table is a model. Yours collapses elsewhere, or not at all; measure it.",
		"Loopback has no network in it, and a client that shares the machine takes processor time from the server.",
	},
}
