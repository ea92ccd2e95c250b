package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/forebay"
)

// printCluster prints a line for each gate in a cluster, and below it one for each
// program that shares it.
func printCluster(w io.Writer, gates []gateStatus) error {
	gates = slices.DeleteFunc(gates, func(g gateStatus) bool { return g.Cluster == nil })
	if len(gates) == 0 {
		_, err := fmt.Fprintln(w, "no gate is in a cluster")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "gate\tmode\tlimit\theld\tin use\twaiting\tover\treclaimed\tlost\tepoch\t")
	for _, g := range gates {
		c := g.Cluster
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			g.Name, c.Mode, clusterLimit(c), c.Held, c.InUse, c.Waiting, c.Over, c.Reclaimed, c.Lost, c.Epoch)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "gate\tinstance\thost\theld\tin use\twaiting\tlease\tseen\toldest\tlimit\t")
	for _, g := range gates {
		for _, p := range g.Cluster.Instances {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t\n",
				g.Name, instance(p), p.Host, p.Held, p.InUse, p.Waiting, millis(p.LeaseMS), millis(p.SeenMS), millis(p.OldestMS), p.Limit)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printAways(w, gates)
}

// printAways says which gates have trouble with their store.
func printAways(w io.Writer, gates []gateStatus) error {
	for _, g := range gates {
		if g.Cluster.Error == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s: %s\n", g.Name, strings.TrimSpace(g.Cluster.Error)); err != nil {
			return err
		}
	}
	return nil
}

// clusterLimit is the limit in force, and whether it is one set by hand.
func clusterLimit(c *forebay.ClusterStats) string {
	limit := fmt.Sprint(c.Limit)
	if c.Limit == 0 {
		limit = "closed"
	}
	if c.Overridden {
		limit += " by hand"
	}
	return limit
}

// instance is what an instance is called, with a mark for the one that answers.
func instance(p forebay.ClusterPart) string {
	if p.Self {
		return "* " + p.ID
	}
	return p.ID
}

func millis(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
