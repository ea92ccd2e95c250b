package main

import "fmt"

// proxySuite compares the program with the proxies that could stand in its place.
var proxySuite = &suite{
	name: "proxy", making: "bench-proxy", document: "proxy-performance.md", title: "Performance of the proxy",
	about: `All figures are of one run. Each proxy is a process of its own and runs
throughout, before the same upstream; they are asked in turn (A B C A B C …), so that noise of the machine hits all
alike. A figure is the median of its rounds; a ratio is taken within a round, and is the median of those. Processor time
is that of all threads of the proxy's processes, of user and kernel, as the scheduler counts it. It is what to look at:
proxies, upstream and client share two cores, so that rates and latencies tell of all three. Ratios carry over to other
machines, microseconds do not.

How the proxies are set up is at the end. ` + "`scripts/servers bench`" + ` installs what is missing.`,
	sections: []func(effort) (*section, error){smallSection, addedSection, largeSection, turnedAwaySection, collapseSection},
	peer:     versions,
	work: func(e effort) string {
		return fmt.Sprintf("%d rounds of the wire, %d of the last table", e.rounds, e.collapseRounds)
	},
	limits: []string{
		"Loopback has no network in it. With a real one the kernel does more for every byte, for all proxies alike.",
		"Two cores, which client and upstream share with the proxy. What a proxy can do at most on a machine of its own is not measured here.",
		"nginx, HAProxy and Caddy are those of the distribution; newer ones may do better.",
		"The others do other things. nginx serves files, HAProxy balances, Caddy gets its own certificates; none of them reads a path in more than one way, says who holds a slot, or knows how long a client should stay away.",
		"The upstream of the last table is a model. Yours collapses elsewhere, or not at all; measure it.",
	},
	appendix: proxySettings,
}

const (
	cpuAnswer  = "CPU, µs"
	perSecond  = "requests/s"
	p50Micros  = "p50, µs"
	p99Micros  = "p99, µs"
	overDirect = "added, µs"
)

// crowdedSection has every proxy asked over many connections at once.
func crowdedSection(s *section, conns, requests int, what exchange) (*section, error) {
	lab, err := proxies()
	if err != nil {
		return nil, err
	}
	s.base = nameNginx
	s.columns = []column{
		{name: cpuAnswer, ratio: "x nginx"}, {name: perSecond, more: true, neutral: true},
		{name: p50Micros, neutral: true}, {name: p99Micros, ratio: "x nginx", neutral: true},
	}
	s.rows = lab.rows(func(p *proxy) figures { return p.load(conns, requests, what) })
	lab.warm(conns, what)
	return s, nil
}

func smallSection(e effort) (*section, error) {
	return crowdedSection(&section{
		name: "small", title: "Answers of 1 KiB",
		about: "64 connections that stay open, each with one request at a time, answered with 1 KiB.",
		targets: []target{
			{what: "CPU of an answer of 1 KiB ÷ Caddy's", limit: 0.75, of: quotient(nameOurs, nameCaddy, cpuAnswer)},
		},
	}, 64, e.proxyRequests, smallExchange)
}

func largeSection(e effort) (*section, error) {
	return crowdedSection(&section{
		name: "large", title: "Answers of 1 MiB",
		about: "16 connections that stay open, each with one request at a time, answered with 1 MiB.",
		targets: []target{
			{what: "CPU of an answer of 1 MiB ÷ nginx's", limit: 0.75, of: quotient(nameOurs, nameNginx, cpuAnswer)},
		},
	}, 16, e.largeRequests, largeExchange)
}

func turnedAwaySection(e effort) (*section, error) {
	lab, err := proxies()
	if err != nil {
		return nil, err
	}
	release, err := lab.fill()
	if err != nil {
		release()
		return nil, err
	}
	return crowdedSection(&section{
		name: "refused", title: "Refusals",
		about: "A limit of one, which a request that is never answered uses up. 64 connections that stay open ask for the same, and are refused.",
		targets: []target{
			{what: "CPU of a refusal ÷ nginx's", limit: 2, of: quotient(nameOurs, nameNginx, cpuAnswer)},
			{what: "p99 of a refusal ÷ nginx's", limit: 2, of: quotient(nameOurs, nameNginx, p99Micros)},
		},
		notes: []string{"forebay's refusal says when to come back and why it was refused, under an id that its log has too; the others' are one fixed line."},
		close: release,
	}, 64, e.proxyRequests, refusedExchange)
}

func addedSection(e effort) (*section, error) {
	lab, err := proxies()
	if err != nil {
		return nil, err
	}
	s := &section{
		name: "added", title: "What a proxy adds to one request", base: nameHAProxy,
		about: "One connection, one request at a time, answered with 1 KiB; and the same to the upstream itself. What is added is the median by way of the proxy less the median without, of the same round.",
		columns: []column{
			{name: overDirect, ratio: "x HAProxy"}, {name: p50Micros, neutral: true}, {name: p99Micros, neutral: true},
		},
		rows: append([]row{{name: nameDirect, kind: yardstick}}, lab.rows(nil)...),
		targets: []target{
			{what: "added to the median ÷ HAProxy's", limit: 1.6, of: quotient(nameOurs, nameHAProxy, overDirect)},
		},
		notes:    []string{"What is left of the time that forebay adds is mostly wake-ups, of goroutines by sockets and of threads by goroutines, which Go does by itself."},
		together: func(i int) (round, error) { return lab.addedRound(i, e.loneRequests), nil },
	}
	lab.warm(1, smallExchange)
	return s, nil
}

func (l *proxyLab) addedRound(i, requests int) round {
	m := round{nameDirect: l.direct.load(1, requests, smallExchange)}
	for k := range l.all {
		p := l.all[(i+k)%len(l.all)]
		f := p.load(1, requests, smallExchange)
		f[overDirect] = f[p50Micros] - m[nameDirect][p50Micros]
		m[p.name] = f
	}
	return m
}
