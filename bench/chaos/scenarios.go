//go:build linux

package main

import "time"

// scenarios returns everything that goes wrong, in the order of the table.
func scenarios() []scenario {
	var all []scenario
	all = append(all, workerScenarios()...)
	all = append(all, storeScenarios()...)
	all = append(all, clockScenarios()...)
	all = append(all, networkScenarios()...)
	all = append(all, limitScenarios()...)
	all = append(all, awayScenarios()...)
	return append(all, storms()...)
}

func workerScenarios() []scenario {
	return []scenario{
		{name: "none", short: true},
		{name: "cold start of all workers at once", set: func(st *stage) { st.sheet.Rush = true }},
		{name: "calls of several units", set: func(st *stage) { st.sheet.Work.Costs = true }, fits: contender.ours},
		{name: "calls that do not wait", set: func(st *stage) { st.sheet.Patience = 0 }, fits: contender.ours},
		{name: "the TTL of the tokens ends (1 h, here 4 s)", set: func(st *stage) { st.sheet.TTL = 4 * time.Second }, fits: contender.hasTokens},
		{name: "SIGKILL of a worker", set: killed, fault: killWorker, judge: soonAgain, short: true},
		{name: crowdDies, set: crowd, fault: killWorker, judge: dipped},
		{name: "SIGTERM of a worker", set: longHolder, fault: terminateWorker, judge: returnedAtOnce, short: true},
		{name: "SIGSTOP of a worker, 5 s", set: longHolder, fault: freezeWorker, judge: boundWhileFrozen},
		{name: "SIGSTOP of a worker, 5 s, fenced", set: fencedHolder, fault: freezeWorker, judge: onlyWhatIsAccepted, fits: contender.ours, short: true},
		{name: "no processor left", set: starved, after: 10 * time.Second, alone: true},
	}
}

// killed watches rivals until their leases have ended too.
func killed(st *stage) {
	longHolder(st)
	if !st.ours() {
		st.after = 14 * time.Second
	}
}

func fencedHolder(st *stage) {
	longHolder(st)
	st.sheet.Loan.Fenced = true
}

func starved(st *stage) { st.sheet.Procs, st.sheet.Hogs = 1, 3 }

func storeScenarios() []scenario {
	return []scenario{
		{name: "FLUSHALL", fault: flush, short: true},
		{name: unheardFlush, fault: unheard(flush), short: true},
		{name: "SCRIPT FLUSH", fault: flushScripts},
		{name: "DEL of each key", fault: deleteKeys},
		{name: "eviction", fault: evict},
		{name: "Redis SIGKILL, empty restart", fault: crashServer, short: true},
		{name: "Redis SIGSTOP, 5 s", fault: freezeServer},
		{name: "CLIENT PAUSE, 3 s", fault: pauseClients},
		{name: "CLIENT KILL of the subscribers", fault: killSubscribers},
		{name: "CLIENT KILL of everybody", fault: killClients},
		{name: "failover by Sentinel to a stale replica", world: replicatedWorld, fault: failOver(400 * time.Millisecond)},
		{name: lateNews, world: standbyWorld, fault: takeOver, short: true},
		{name: "Cluster slot migration, and back", world: clusterWorld, fault: migrate, fits: contender.ours},
	}
}

// What half of the workers do not hear of at once.
const (
	unheardFlush = "FLUSHALL while half of the workers are cut off"
	unheardHour  = "Redis' clock +1 h while half of the workers are cut off"
)

func clockScenarios() []scenario {
	turned := func(name, to string, short bool) scenario {
		return scenario{name: name, world: turnedWorld, set: longWork, fault: turn(to), short: short}
	}
	own := func(name string, fault func(*stage) error) scenario {
		return scenario{name: name, set: longWork, fault: fault, edits: turnable, fits: contender.ours}
	}
	cutOff := weather(mood{silent: true}, 4*time.Second, 0)
	return []scenario{
		turned("Redis' clock +1 h", "+3600", false),
		{name: unheardHour, world: turnedWorld, fault: unheard(turn("+3600")), short: true},
		turned("Redis' clock −1 h", "-3600", false),
		turned("Redis' clock 10 % fast", "+0 x1.1", false),
		turned("Redis' clock 10 % slow", "+0 x0.9", false),
		own("two workers' wall clock +1 h", turnWorkers(time.Hour, 1, watch(2*time.Second), 0, 1)),
		own("two workers' wall clock −1 h", turnWorkers(-time.Hour, 1, watch(2*time.Second), 0, 1)),
		own("two workers' clock 10 % fast, one is cut off for 4 s", turnWorkers(0, 1.1, cutOff, 0, 1)),
		own("two workers' clock 10 % slow, one is cut off for 4 s", turnWorkers(0, 0.9, cutOff, 0, 1)),
		own("two workers' clock −1 h, one is cut off for 4 s", turnWorkers(-time.Hour, 1, cutOff, 0, 1)),
	}
}

// longWork makes calls hold long enough that slots that are taken away from them are
// missed.
func longWork(st *stage) {
	st.sheet.Work.Hold, st.sheet.Work.Long = 60*time.Millisecond, 400*time.Millisecond
}

func networkScenarios() []scenario {
	const while = 4 * time.Second
	return []scenario{
		{name: "connections refused, 4 s", fault: weather(mood{cut: true}, while)},
		{name: "nothing gets through, 4 s", about: "connections are accepted and nothing is forwarded", fault: weather(mood{silent: true}, while)},
		{name: "one worker cut off, 4 s", fault: weather(mood{silent: true}, while, 0)},
		{name: "half of the workers cut off, 4 s", fault: weather(mood{silent: true}, while, 0, 1), short: true},
		{name: "answers of one worker held back, 4 s", fault: weather(mood{mute: true}, while, 0)},
		{name: "30 ± 30 ms each way, 4 s", fault: weather(mood{delay: 15 * time.Millisecond, spread: 30 * time.Millisecond}, while)},
		{name: "every 20th command lost, 4 s", fault: weather(mood{drop: 0.05}, while)},
		{name: "every 20th answer lost, 4 s", fault: weather(mood{swallow: 0.05}, while), short: true},
		{name: "every 5th command twice, late, 4 s", fault: weather(mood{again: 0.2, belated: 300 * time.Millisecond}, while), short: true},
	}
}

func limitScenarios() []scenario {
	return []scenario{
		{name: "limit 12, 20, 5, 12 by hand", short: true, fits: contender.ours, judge: followedLimits,
			fault: changeLimit(change{20, 3 * time.Second}, change{5, 4 * time.Second}, change{12, 3 * time.Second})},
		{name: "limit 0 and back", fits: contender.ours, judge: followedLimits,
			fault: changeLimit(change{0, 4 * time.Second}, change{12, 3 * time.Second})},
		{name: "limits 12 and 8 side by side for a minute", fits: contender.ours, fault: deploy(8, 5*time.Second, 40*time.Second)},
	}
}

// storms come last: what the scenarios before show one by one may come together.
func storms() []scenario {
	const long = 40 * time.Second
	return []scenario{
		{name: "a storm of all of it, 40 s", world: turnedWorld, fits: contender.ours,
			fault: storm(long, badNetwork, badServer, badWorkers)},
		{name: "a storm, workers SIGSTOPped too, fenced", world: turnedWorld, fits: contender.ours,
			set:   func(st *stage) { st.sheet.Loan.Fenced = true },
			fault: storm(long, badNetwork, badServer, sleepyWorkers), judge: onlyWhatIsAccepted},
	}
}
