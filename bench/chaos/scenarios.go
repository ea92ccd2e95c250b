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
	return append(all, awayScenarios()...)
}

func workerScenarios() []scenario {
	return []scenario{
		{name: "none"},
		{name: "cold start of all workers at once", set: func(st *stage) { st.sheet.Rush = true }},
		{name: "calls of several units", set: func(st *stage) { st.sheet.Work.Costs = true }, fits: contender.ours},
		{name: "the TTL of the tokens ends (1 h, here 4 s)", set: func(st *stage) { st.sheet.TTL = 4 * time.Second }, fits: contender.hasTokens},
		{name: "SIGKILL of a worker", set: longHolder, fault: killWorker, judge: soonAgain, after: 14 * time.Second},
		{name: crowdDies, set: crowd, fault: killWorker, judge: dipped},
		{name: "SIGTERM of a worker", set: longHolder, fault: terminateWorker, judge: returnedAtOnce},
		{name: "SIGSTOP of a worker, 5 s", set: longHolder, fault: freezeWorker, judge: boundWhileFrozen},
		{name: "SIGSTOP of a worker, 5 s, fenced", set: fencedHolder, fault: freezeWorker, judge: onlyWhatIsAccepted, fits: contender.ours},
		{name: "no processor left", set: starved, after: 10 * time.Second, alone: true},
	}
}

func fencedHolder(st *stage) {
	longHolder(st)
	st.sheet.Loan.Fenced = true
}

func starved(st *stage) { st.sheet.Procs, st.sheet.Hogs = 1, 3 }

func storeScenarios() []scenario {
	return []scenario{
		{name: "FLUSHALL", fault: flush},
		{name: "SCRIPT FLUSH", fault: flushScripts},
		{name: "DEL of each key", fault: deleteKeys},
		{name: "eviction", fault: evict},
		{name: "Redis SIGKILL, empty restart", fault: crashServer},
		{name: "Redis SIGSTOP, 5 s", fault: freezeServer},
		{name: "CLIENT PAUSE, 3 s", fault: pauseClients},
		{name: "CLIENT KILL of the subscribers", fault: killSubscribers},
		{name: "CLIENT KILL of everybody", fault: killClients},
		{name: "failover by Sentinel to a stale replica", world: replicatedWorld, fault: failOver(400 * time.Millisecond)},
		{name: lateNews, world: standbyWorld, fault: takeOver},
		{name: "Cluster slot migration, and back", world: clusterWorld, fault: migrate, fits: contender.ours},
	}
}

func clockScenarios() []scenario {
	turned := func(name, to string) scenario {
		return scenario{name: name, world: turnedWorld, set: longWork, fault: turn(to)}
	}
	return []scenario{
		turned("Redis' clock +1 h", "+3600"),
		turned("Redis' clock −1 h", "-3600"),
		turned("Redis' clock 10 % fast", "+0 x1.1"),
		turned("Redis' clock 10 % slow", "+0 x0.9"),
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
		{name: "half of the workers cut off, 4 s", fault: weather(mood{silent: true}, while, 0, 1)},
		{name: "answers of one worker held back, 4 s", fault: weather(mood{mute: true}, while, 0)},
		{name: "30 ± 30 ms each way, 4 s", fault: weather(mood{delay: 15 * time.Millisecond, spread: 30 * time.Millisecond}, while)},
		{name: "every 20th command lost, 4 s", fault: weather(mood{drop: 0.05}, while)},
		{name: "every 20th answer lost, 4 s", fault: weather(mood{swallow: 0.05}, while)},
		{name: "every 5th command twice, late, 4 s", fault: weather(mood{again: 0.2, belated: 300 * time.Millisecond}, while)},
	}
}

func limitScenarios() []scenario {
	return []scenario{
		{name: "limit 12, 20, 5, 12 by hand", fits: contender.ours, judge: followedLimits,
			fault: changeLimit(change{20, 3 * time.Second}, change{5, 4 * time.Second}, change{12, 3 * time.Second})},
		{name: "limit 0 and back", fits: contender.ours, judge: followedLimits,
			fault: changeLimit(change{0, 4 * time.Second}, change{12, 3 * time.Second})},
		{name: "limits 12 and 8 side by side", fits: contender.ours, fault: deploy(8, 2*time.Second, 10*time.Second)},
	}
}
