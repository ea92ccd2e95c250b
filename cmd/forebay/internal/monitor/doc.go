// Package monitor writes what other people's tools take to watch a running forebay: rules
// for Prometheus, by [Alerts], and a dashboard for Grafana, by [Dashboard]. Both fit the
// gates that they are given: each gate's own patience is in the rules, and of a cluster
// there is something only where gates share a limit.
package monitor
