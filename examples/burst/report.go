package main

import (
	"fmt"
	"slices"
	"time"

	"example.com/forebay"
)

const (
	opening = `A backend has %d connections, and a call uses one of them for %v: that makes at most
%.0f answers a second. Callers send %.0f calls a second (%gx), and after %v
suddenly %.0f (%gx). An answer that takes longer than %v is of no use to its caller.

1. WITHOUT A GATE every call goes straight into the backend.

`
	halfway = `
2. WITH A GATE at most %d calls run, at most %d wait in line (up to %v each), and the
   rest is refused at once.

`
	books = `
The gate's books: %d calls = %d accepted + %d refused + %d whose caller left.
Of those refused %d found no place in line, and %d waited in vain. %d leases were
given, %d given back.

WHAT HAPPENED. Without a gate the backend takes in whoever comes, here all %d callers
there are. The crowd slows down every call until answers come after their callers have
given up: the backend works without a pause, and for nobody.
`
	flat = `With a gate it never has more calls than it can carry. Callers that cannot be served
learn so at once, with a Retry-After, and all others are answered as if nothing was wrong.
`
	dented = `This gate was no great help: compare its limit of %d with the backend's %d connections.
`
	next = `
WHAT NEXT. Try --limit 4 (too careful), --limit 256 (hardly a gate), --wait 0 (no line).
In a program of yours the gate is two lines:

	gate, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 8, MaxWait: 100 * time.Millisecond})
	http.Handle("/reports", gate.Wrap(reports))
`
)

// report prints both runs side by side, and what they mean.
func report(without, with *tally, st forebay.Stats) {
	fmt.Printf("\nUSEFUL ANSWERS over time: a sign is %v, a full one the most that the backend can do\n\n", step)
	fmt.Printf("   without  |%s|\n   with     |%s|\n", without.picture(), with.picture())
	fmt.Printf("             %-*s%gx\n\n", with.calm/step, fmt.Sprintf("%gx", quiet), crowded)
	row := func(what string, of func(*tally) any) {
		fmt.Printf("   %-34s %14v %14v\n", what, of(without), of(with))
	}
	fmt.Printf("   %-34s %14s %14s\n", "", "without a gate", "with a gate")
	row(fmt.Sprintf("useful answers a second at %gx", quiet), func(t *tally) any { return t.goodput(0, t.calm) })
	row(fmt.Sprintf("useful answers a second at %gx", crowded), func(t *tally) any { return t.goodput(t.calm, t.length) })
	row("refused", func(t *tally) any { return len(t.refusals) })
	row("too late, or never answered", func(t *tally) any { return t.late + t.unsent })
	row("half of the answers took up to", func(t *tally) any { return percentile(t.answers, 50) })
	row("99 % of the answers took up to", func(t *tally) any { return percentile(t.answers, 99) })
	row("half of the refusals took up to", func(t *tally) any { return percentile(t.refusals, 50) })
	row("most calls in the backend at once", func(t *tally) any { return t.most })
	fmt.Printf(books, with.sent, st.Accepted, st.Rejected(), st.Canceled, st.RejectedBusy, st.RejectedTimeout,
		st.Granted, st.Released, callers)
	if float64(with.between(with.calm, with.length)) > 0.7*capacity*(with.length-with.calm).Seconds() {
		fmt.Print(flat)
	} else {
		fmt.Printf(dented, st.Capacity, connections)
	}
	fmt.Print(next)
}

// picture draws the useful answers, one sign for each step.
func (t *tally) picture() string {
	signs, drawn := []rune(" ▁▂▃▄▅▆▇█"), []rune{}
	full := capacity * step.Seconds()
	for _, n := range t.inTime[:t.length/step] {
		level := int(float64(n)/full*float64(len(signs)-1) + 0.5)
		drawn = append(drawn, signs[min(level, len(signs)-1)])
	}
	return string(drawn)
}

func (t *tally) goodput(from, to time.Duration) string {
	return fmt.Sprintf("%.0f", float64(t.between(from, to))/(to-from).Seconds())
}

func percentile(all []time.Duration, p int) any {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return all[(len(all)-1)*p/100].Round(100 * time.Microsecond)
}
