package config

import (
	"fmt"
	"strings"
)

// scenarioKeys is every key of a scenario but those of its gates, which are the
// program's own, in the order of the documentation.
var scenarioKeys = []Key{
	{"for", "a duration, 1ms to 24h: how long calls come", "1m",
		"the numbers of a minute are steady to about a point at a hundred calls a second", "Half: noise grows by 1.4. Twice: it takes twice as long.", "60s"},
	{"warm_up", "a duration, 0 to less than for: calls that come first in it are simulated and not counted", "0",
		"what begins empty is part of the truth; for the steady state leave the start out", "", "10s"},
	{"every", "a duration, 1ms to 24h: of how long one point of the plot tells", "a hundredth of for",
		"a plot has room for about a hundred", "Half: points are noisy. Twice: short peaks are not seen.", "1s"},
	{"seed", "a whole number from 0 to 2147483647: the same seed gives the same calls and the same result, bit for bit", "1",
		"two runs that differ in one thing are to be compared on the same calls", "", "7"},
	{"instances", "a whole number from 1 to 1000: programs that share the calls at random, each with gates of its own", "1",
		"most have one", "", "2"},
	{"resources.NAME.servers", "a whole number from 1: how many calls are served at once; the others stand in line there, without bound", "all",
		"a pool has a size, and a processor has none", "", "20"},
	{"resources.NAME.cores", "a number from 0: how many calls run at full speed; more share it", "all",
		"it is for what shares, as processors do", "", "8"},
	{"resources.NAME.contention.sigma", "a number from 0: n calls are slowed down by 1 + sigma (n-1) + kappa n (n-1), after the universal scalability law", "0",
		"nothing is known of it", "", "0.02"},
	{"resources.NAME.contention.kappa", "a number from 0: what each pair of calls costs; above √((1-sigma)/kappa) calls less is done than before", "0",
		"nothing is known of it", "", "0.0006"},
	{"resources.NAME.cliff.at", "a whole number from 1: up to so many calls it does what they ask", "required in a cliff",
		"where it begins has to be known", "", "30"},
	{"resources.NAME.cliff.power", "a number from 0: beyond, n calls get (at ÷ n)^power of the most done", "required in a cliff",
		"how steep it is has to be known", "", "1.5"},
	{"resources.NAME.throughput", "a mapping from numbers of calls to what is done by so many at once, in calls of one that is alone; lines between the points", "none",
		"who has measured a real backend can write it down here", "", "{1: 1, 10: 9.5, 40: 25, 80: 20}"},
	{"resources.NAME.changes[].at", "a duration from the start", "required", "a change has a time", "", "40s"},
	{"resources.NAME.changes[].speed", "a number from 0.001 to 1000, times the normal speed", "as before", "what is left out stays", "", "0.5"},
	{"resources.NAME.changes[].servers", "a whole number from 1", "as before", "what is left out stays", "", "10"},
	{"resources.NAME.pauses.every", "a duration, 1ms to 24h: so often it stands still", "required in pauses", "it has to be known", "", "5s"},
	{"resources.NAME.pauses.for", "a duration, 1ms to less than every: for so long", "required in pauses", "it has to be known", "", "200ms"},
	{"gates.NAME.max_in_flight.aimd.timeout", "a duration, 1ms to 24h: what a call takes that says that there is too much", "1s", "it is what people take for at once", "Half: a slow backend is used less. Twice: calls take twice as long.", "1s"},
	{"gates.NAME.max_in_flight.aimd.backoff", "a number from 0.5 to 0.999: what such a call leaves of the limit", "0.9", "it is the published one", "", "0.9"},
	{"gates.NAME.max_in_flight.aimd.min", "a whole number from 1: the least that the limit ever is", "1", "the truth may be 1", "", "4"},
	{"gates.NAME.max_in_flight.aimd.max", "a whole number from min: the most that it ever is", "1000, or min if that is more", "nothing else bounds it before a backend that becomes slow", "", "200"},
	{"gates.NAME.max_in_flight.aimd.start", "a whole number from min to max: the limit before anything is known", "20, or what min and max leave of it", "most backends take so many", "", "20"},
	{"gates.NAME.max_in_flight.vegas.healthy", "a duration, 1ms to 24h: what calls take at most while all is well; more is not believed to be normal", "none", "nobody else knows it; without it a long incident becomes normal", "", "50ms"},
	{"gates.NAME.max_in_flight.vegas.min", "a whole number from 1: the least that the limit ever is", "1", "the truth may be 1", "", "4"},
	{"gates.NAME.max_in_flight.vegas.max", "a whole number from min: the most that it ever is", "1000, or min if that is more", "it is rarely reached", "", "200"},
	{"gates.NAME.max_in_flight.vegas.start", "a whole number from min to max: the limit before anything is known", "20, or what min and max leave of it", "most backends take so many", "", "20"},
	{"gates.NAME.max_in_flight.gradient2.healthy", "a duration, 1ms to 24h: what calls take at most while all is well; more is not believed to be normal", "none", "nobody else knows it; without it a long incident becomes normal", "", "50ms"},
	{"gates.NAME.max_in_flight.gradient2.tolerance", "a number from 1 to 10: how much longer than usual calls may take", "1.5", "it is the published one", "Half: chance lowers the limit. Twice: calls take twice as long.", "1.5"},
	{"gates.NAME.max_in_flight.gradient2.headroom", "a whole number from 1 to 1000: what is added each second", "4", "it is the published one", "Half: it grows half as fast. Twice: twice as many stand in line in the backend.", "4"},
	{"gates.NAME.max_in_flight.gradient2.min", "a whole number from 1: the least that the limit ever is", "1", "the truth may be 1", "", "4"},
	{"gates.NAME.max_in_flight.gradient2.max", "a whole number from min: the most that it ever is", "1000, or min if that is more", "in long overload nothing else bounds it", "", "200"},
	{"gates.NAME.max_in_flight.gradient2.start", "a whole number from min to max: the limit before anything is known", "20, or what min and max leave of it", "most backends take so many", "", "20"},
	{"routes.NAME.gate", "the name of a gate", "none: nobody is refused", "that is the backend alone, to compare with", "", "orders"},
	{"routes.NAME.gates", "a list of names, passed in this order, all or none", "none", "it is for calls that use two things at once", "", "[orders, reports]"},
	{"routes.NAME.cost", "a whole number from 1: units that a call takes of each gate", "1", "a call is one call", "", "2"},
	{"routes.NAME.work[].at", "the name of a resource", "required", "work is done somewhere", "", "db"},
	{"routes.NAME.work[].takes", "how long it takes there if nothing else is to be done: a time, or one of {exponential: MEAN}, {uniform: {from: TIME, to: TIME}}, {lognormal: {mean: TIME, sigma: NUMBER}}, {pareto: {mean: TIME, shape: NUMBER}}, {mix: [{share: PERCENT, takes: THESE AGAIN}]}", "required",
		"nobody else knows it", "", "{exponential: 20ms}"},
	{"clients.NAME.route", "the name of a route", "required", "a call is for something", "", "orders"},
	{"clients.NAME.rate", "a number from 0: calls a second", "required unless there is a trace", "nobody else knows it", "", "200"},
	{"clients.NAME.even", "true or false: calls come at one distance instead of at random", "false", "callers do not know of each other, so their calls are a Poisson process", "", "true"},
	{"clients.NAME.batch", "a whole number from 1: so many come at once, rate ÷ batch times a second", "1", "most come alone", "", "40"},
	{"clients.NAME.bursts.high", "a number from 0: the rate in a burst, in those of the mean", "1.75", "with low it makes the mean", "", "1.75"},
	{"clients.NAME.bursts.low", "a number from 0: the rate between bursts", "0.25", "with high it makes the mean", "", "0.25"},
	{"clients.NAME.bursts.mean", "a duration, 1ms to 24h: how long a burst takes, and what is between two, on average, at random", "200ms", "that is longer than a good line and shorter than an adaptation", "", "200ms"},
	{"clients.NAME.steps[].at", "a duration from the start", "required", "a step has a time", "", "10s"},
	{"clients.NAME.steps[].times", "a number from 0: from then on the rate is so many times rate", "required", "a step has a height", "", "5"},
	{"clients.NAME.trace", "a path: a file with one time a line, in seconds or with a unit, or a log of decisions (log: {decisions: all}), in which at most ten refusals a second are, so take one of a time without; or {file: PATH, route: ROUTE AS THE LOG HAS IT}. These calls come besides those of rate", "none", "most have no record", "", "{file: testdata/calls.txt}"},
	{"clients.NAME.callers", "a whole number from 1: how many they are, for per_caller", "unknown, so per_caller does nothing", "most gates bound nobody alone", "", "100"},
	{"clients.NAME.deadline", "a duration, 1ms to 24h: who has no answer by then leaves", "none: callers are patient for ever", "who waits for ever hides every fault", "Half: work is done for nobody more often. Twice: a backend may be twice as slow before it is noticed.", "1s"},
	{"clients.NAME.tells", "true or false: the deadline comes with the call (as grpc-timeout), so that gates refuse what would be late", "false", "HTTP has no header for it", "", "true"},
	{"clients.NAME.cancels", "true or false: work for who has left ends", "false", "most backends do not notice", "", "true"},
	{"clients.NAME.retries.max", "a whole number from 0: further attempts of who has no answer", "3, and without retries none", "it is what client libraries do", "", "3"},
	{"clients.NAME.retries.backoff", "a duration: the pause before the first of them", "100ms", "it is what client libraries do", "", "100ms"},
	{"clients.NAME.retries.factor", "a number from 1 to 10, by which the pause grows each time", "2", "it is what client libraries do", "", "2"},
	{"clients.NAME.retries.jitter", "a number from 0 to 1: the part of a pause that is random", "0.5", "it is what client libraries do", "", "0.5"},
	{"clients.NAME.retries.honours", "true or false: after a refusal the Retry-After counts instead", "false", "most clients do not look at it", "", "true"},
}

// ExampleScenario is a whole scenario.
const ExampleScenario = `# A shop that for 20 seconds is asked for twice as much as its pool can do.
for: 60s
warm_up: 10s
resources:
  web: {cores: 2}                # what the shop's own processes compute
  db:  {servers: 20}             # the pool
gates:
  reports: {max_in_flight: 4, max_wait: 100ms, max_waiting: 8}
  orders:  {max_in_flight: 12, max_wait: 50ms}
routes:
  orders:
    gate: orders
    work: [{at: web, takes: 1ms}, {at: db, takes: {exponential: 20ms}}]
  reports:
    gate: reports
    work: [{at: db, takes: {lognormal: {mean: 400ms, sigma: 1}}}]
clients:
  shoppers: {route: orders, rate: 500, deadline: 1s, steps: [{at: 20s, times: 3}, {at: 40s, times: 1}]}
  office:   {route: reports, rate: 20, deadline: 5s, retries: {max: 3, honours: true}}
`

var scenarioHeadings = map[string]string{
	"gates.NAME.max_in_flight.aimd":      "`max_in_flight: {aimd: {…}}`: additive increase, multiplicative decrease",
	"gates.NAME.max_in_flight.vegas":     "`max_in_flight: {vegas: {…}}`: few calls in line in the backend",
	"gates.NAME.max_in_flight.gradient2": "`max_in_flight: {gradient2: {…}}`: calls that take about as long as usual",
	"":                                   "Top level",
	"resources.NAME":                     "`resources`: what calls share behind the gates",
	"resources.NAME.contention":          "`contention`: how calls slow each other down",
	"resources.NAME.cliff":               "`cliff`: where it begins to thrash",
	"resources.NAME.changes[]":           "`changes`: what becomes of it meanwhile",
	"resources.NAME.pauses":              "`pauses`: when it stands still",
	"routes.NAME":                        "`routes`: kinds of calls",
	"routes.NAME.work[]":                 "`work`: what a call needs, one part after the other",
	"clients.NAME":                       "`clients`: who calls",
	"clients.NAME.bursts":                "`bursts`: a rate that jumps",
	"clients.NAME.steps[]":               "`steps`: a rate that changes at given times",
	"clients.NAME.retries":               "`retries`: what callers do without an answer",
}

const scenarioHead = "# Scenarios\n\nGenerated by `make docs`; do not edit.\n\n" +
	"`forebay simulate SCENARIO.yaml` plays calls that nobody makes through the very code that\n" +
	"admits and refuses in `serve`, in simulated time: minutes take moments, and nothing is put\n" +
	"at risk. So a limit, a wait or a new backend can be tried before it is needed. The file is\n" +
	"as strict as a configuration; `gates` is that of the configuration and can be copied from\n" +
	"there. What is simulated of it is `max_in_flight`, `max_wait`, `max_waiting`,\n" +
	"`per_caller.max_in_flight` and `refuse.retry_after`; the rest is read and does nothing.\n" +
	"\n" +
	"```yaml\n%s```\n\n" +
	"What the columns say:\n\n" +
	"| | |\n| --- | --- |\n" +
	"| CALLS, ANSWERED, IN TIME | what clients wanted, each once however often they asked; how much of it was answered before they left, and which part that is |\n" +
	"| ATTEMPTS, REFUSED, LEFT | how often they asked; what gates refused; whose callers left while it ran |\n" +
	"| P50, P99 of a client | how long attempts took that were answered |\n" +
	"| REFUSED AFTER | how long others stood in line for nothing, on average |\n" +
	"| LIMIT, IN FLIGHT, WAITING | means over the whole time, warm-up included, of all instances together |\n" +
	"| WAITED P50, P99 | how long calls that ran had stood in line |\n" +
	"| DOES | what a resource did of what it could |\n\n" +
	"Percentiles are rounded up, by 1.6 %% at most. The last line compares the answers with the\n" +
	"ideal, which is what the resource that has most to do could have done in each interval, at\n" +
	"the number of calls that suits it best. It can be a little above 100 %%: the ideal is made from\n" +
	"means, and calls that came before an interval are answered in it.\n\n" +
	"`--plot FILE.svg` (or `.png`) draws it over time. `--no-gates` lets everybody in. `--json` has\n" +
	"all of it for machines. `--set KEY=VALUE` tries another value of a key, such as\n" +
	"`gates.orders.max_in_flight=24`.\n\n" +
	"Not simulated: the network, what the gates themselves cost, slow senders and readers, and\n" +
	"limits over several machines (with `instances` each has its own).\n"

// ScenarioReference returns docs/scenarios.md, made from the keys that the reader knows.
func ScenarioReference() string {
	var b strings.Builder
	fmt.Fprintf(&b, scenarioHead, ExampleScenario)
	writeKeys(&b, scenarioKeys, scenarioHeadings)
	return b.String()
}
