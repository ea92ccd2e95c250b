package main

import "strings"

// A part is code whose release sites are removed together.
type part struct {
	root   string            // of its module
	dirs   []string          // whose code is mutated
	tests  []string          // packages that must notice; none: all that have tests
	names  map[string]target // callees that make a release site
	fields map[string]string // whose decrease gives something back, and what is lost without
}

// parts are the library, whose shell and core hand slots out, and the program, whose
// proxy and connections keep them while answers are under way.
var parts = map[string]part{
	"library": {
		root: ".", dirs: []string{".", "internal/admit"},
		names: releaseNames, fields: releaseFields,
	},
	"program": {
		root: "cmd/forebay", dirs: []string{"internal/proxy", "internal/server"},
		tests: []string{"./internal/proxy", "./internal/server"},
		names: programNames, fields: programFields,
	},
}

// A target is a callee that makes a release site.
type target struct {
	why     string   // what is lost when the call is not made
	answers []string // what a bool result reads instead, one mutant each; none: false
	alone   bool     // only where nobody uses its value: others of that name only ask
}

// releaseNames are those of the library.
var releaseNames = map[string]target{
	"Release":        {why: "a lease, or a slot of the machine, stays taken"},
	"ReleaseAs":      {why: "the same, with an outcome"},
	"end":            {why: "a lease is not ended"},
	"endFree":        {why: "a bare lease is not ended"},
	"endClosed":      {why: "a lease is not given back to the machine"},
	"putFree":        {why: "a tracked slot stays seized"},
	"takeFreed":      {why: "a slot freed while the machine took its room back is lost"},
	"closeLocked":    {why: "a slot that no lease is on is not closed"},
	"pushLocked":     {why: "a closed slot is not there for the next call"},
	"endKept":        {why: "a lease that is tracked or in a chain is not ended"},
	"handBack":       {why: "a slot whose call never ran stays taken"},
	"free":           {why: "a slot word is not freed: a leak, or a second release that counts", answers: []string{"false", "true"}},
	"put":            {why: "a seized slot word stays seized"},
	"unwind":         {why: "the links of a chain that failed stay taken"},
	"Unwind":         {why: "a grant that never ran stays taken"},
	"Leave":          {why: "a waiter that left stays in line"},
	"Disown":         {why: "a slot granted to somebody who left is lost"},
	"ExpireDue":      {why: "a waiter whose patience ended stays in line"},
	"remove":         {why: "a waiter stays in line"},
	"sweep":          {why: "those who can no longer be served stay in line"},
	"dispatch":       {why: "free slots are not handed to the line"},
	"settle":         {why: "what changed is not told to the line or the limiter"},
	"endDrainLocked": {why: "whoever waits for the end of a drain sleeps on"},
	"leave":          {why: "who has left is kept in mind: in line, or as a connection of a server"},
	"wake":           {why: "a waiter that got its answer sleeps on"},
	"close":          {why: "whoever waits on a channel sleeps on"},
	"giveBack":       {why: "a slot that is missed on another instance stays here"},
	"giveBackLocked": {why: "a numbered slot is lost"},
	"reckon":         {why: "slots that were lent or withdrawn are not counted"},
	"refuseAsking":   {why: "who asked the ledger for a slot is not told its answer"},
	"Retract":        {why: "a slot whose time is over stays taken, or its call runs"},
	"endTermLocked":  {why: "calls run on slots whose time is over"},
	"overLocked":     {why: "calls run on slots whose time is over", answers: []string{"false"}},
	"loseLocked":     {why: "whoever holds a lost lease is not told"},
	"deliver":        {why: "the supplier, or whoever lost a lease, is not told"},
	"Poke":           {why: "the supplier sleeps on"},
	"stop":           {why: "a lease is watched for ever"},
}

// releaseFields are those of the library.
var releaseFields = map[string]string{
	"inFlight": "units stay taken",
	"calls":    "a lease stays counted",
	"Units":    "units of a lease of more than one stay counted as lent",
	"Calls":    "a lease of more than one unit stays counted as lent",
	"len":      "a place in line stays taken",
}

// programNames are those of the program.
var programNames = map[string]target{
	"Release":              {why: "a slot, or bytes of the spool, stay taken"},
	"ReleaseAs":            {why: "a slot stays taken until the client has read its answer, or for ever"},
	"giveBack":             {why: "the same"},
	"leave":                {why: "work, a request or an answer that is over stays counted"},
	"Add(-1)":              {why: "an answer or a request that is over stays counted"},
	"Shrink":               {why: "memory of the spool stays taken"},
	"Close":                {why: "a descriptor stays open"},
	"close":                {why: "whoever waits on a channel sleeps on, or connections stay open"},
	"closeIdle":            {why: "connections to the upstream that lie idle stay open"},
	"CloseIdleConnections": {why: "the same"},
	"release":              {why: "a connection to the upstream is neither kept nor closed"},
	"put":                  {why: "the same"},
	"stop":                 {why: "an exchange goes on at the upstream", answers: []string{"false", "true"}},
	"cancel":               {why: "work at the upstream goes on"},
	"cut":                  {why: "the same"},
	"end":                  {why: "the same"},
	"End":                  {why: "work that nobody waits for keeps the program from its end"},
	"unlink":               {why: "a request's end ends work that was given up", answers: []string{"true"}},
	"finish":               {why: "an exchange is neither ended nor reported"},
	"shut":                 {why: "a body is read after its handler, or an upgraded connection stays open"},
	"rest":                 {why: "a handler waits for a read that is over"},
	"Done":                 {why: "whoever waits for the end of something sleeps on", alone: true},
	"ended":                {why: "the reader of an answer waits for more", alone: true},
	"Broadcast":            {why: "the reader or the pump of an answer sleeps on"},
	"roomMade":             {why: "an answer that waits for room keeps its slot"},
	"CloseWrite":           {why: "one side of an upgraded connection does not hear that the other has closed"},
	"goneLocked":           {why: "a connection that is closed stays counted"},
	"makeRoom":             {why: "nobody gets in while silent connections have all descriptors"},
	"Leave":                {why: "a gate that is gone keeps its part of a cluster's slots"},
}

// programFields are those of the program.
var programFields = map[string]string{
	"open":    "a connection that is closed stays counted",
	"lingers": "one that was turned away stays counted",
}

func nameTable(list string) map[string]target {
	names := map[string]target{}
	for n := range strings.SplitSeq(list, ",") {
		names[n] = target{why: "given with -names"}
	}
	return names
}
