//go:build linux

package main

import "time"

// script is the ledger.
const script = "cluster/ledger.lua"

// removals returns the protections that are taken out, each alone, and where that shows.
func removals() []removal {
	return []removal{
		{
			name: "the check of the server's identity", under: lateNews, short: true,
			edits: []edit{{script, "identity ~= '' and identity ~= E[IDENTITY]", "false"}},
			shows: violated, must: violations,
		},
		{
			name: "the bound on the steps of the clock", under: unheardHour,
			edits: []edit{{script, "passed = min(passed, floor(lease / 4))", "passed = passed"}},
			shows: violated, must: violations,
		},
		{
			name: "learning", under: unheardFlush, short: true,
			edits: []edit{{script, "identity, giveUp, NOTCOLD, wall,", "identity, 0, NOTCOLD, wall,"}},
			shows: violated, must: violations,
		},
		{
			name: "the end of the lease", under: "one worker cut off, 4 s",
			edits: []edit{{"cluster/hear.go", "l.until = l.sent.Add(l.me.Lease)", "l.until = l.sent.Add(l.me.Lease + time.Hour)"}},
			shows: violated, must: violations,
		},
		{
			name: "the rule for returns that may have arrived", under: "every 20th answer lost, 4 s",
			edits: []edit{
				{"cluster/tell.go", "l.told, l.acked = l.returned, l.granted", "l.acked = l.granted"},
				{"cluster/hear.go", "	whole := l.adopt(r, &rep)\n", "	l.told = max(l.told, r.Returned)\n	whole := l.adopt(r, &rep)\n"},
			},
			shows: violated, must: violations,
		},
		{
			name: "the bound on what a silent instance is granted", under: crowdDies,
			edits: []edit{{script, "local since = m[GRANTED] - m[TOLD]\n", "local since = -1e14\n"}},
			shows: func(v *verdict) bool { return v.dip < 0.2 }, must: "hardly a slot in use until the dead are given up",
		},
		{
			name: "claims of what is held when the ledger is lost", under: "FLUSHALL",
			edits: []edit{{script, "if learning and epoch ~= 0 then -- it surely holds", "if false then -- it surely holds"}},
			shows: func(v *verdict) bool { return v.use[1] < 0.5 }, must: "less than half in use a second after it",
		},
	}
}

// crowdDies is a worker of which many calls wait, and few run, as it is killed.
const crowdDies = "SIGKILL of a worker with 40 calls in line"

// crowd makes one worker's calls short, so that it has one slot now and then, and
// many calls in line; the others hold for long.
func crowd(st *stage) {
	st.victim = 1
	st.sheet.Limit, st.sheet.Callers, st.sheet.Work = 30, 10, work{Hold: 60 * time.Millisecond}
	st.tweak = func(a *assignment) {
		if a.Worker == st.victim {
			a.Callers, a.Work = 40, work{Hold: 4 * time.Millisecond}
		}
	}
}

// dipped looks how much is in use while nobody knows yet that the worker is dead, and
// its calls stand in line. Each of those that were granted a slot keeps it until then,
// but no more than a few are.
func dipped(st *stage, v *verdict) {
	dead := st.members[st.victim].gone
	v.dip = st.story.use(span{dead.add(500 * time.Millisecond), dead.add(2500 * time.Millisecond)}, st.sheet.Limit)
	v.note("%.0f %% in use while the dead was not given up", 100*v.dip)
	if st.ours() && v.dip < 0.3 {
		v.fault("only %.0f %% of the slots were in use while the dead was not given up", 100*v.dip)
	}
	soonAgain(st, v)
}
