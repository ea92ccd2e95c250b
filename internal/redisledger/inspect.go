package redisledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/forebay/cluster"
)

// oldest is the first version that has all that the script needs.
var oldest = [2]int{6, 2}

// probes are the commands of the script, and of a look at a ledger, with arguments
// that do no harm to a key of their own.
var probes = []struct{ right, call string }{
	{"+hset", "'HSET', KEYS[1], 'a', 'b'"},
	{"+hget", "'HGET', KEYS[1], 'a'"},
	{"+hmget", "'HMGET', KEYS[1], 'a'"},
	{"+hgetall", "'HGETALL', KEYS[1]"},
	{"+hdel", "'HDEL', KEYS[1], 'c'"},
	{"+set", "'SET', KEYS[1], 'a'"},
	{"+pexpire", "'PEXPIRE', KEYS[1], 1000"},
	{"+del", "'DEL', KEYS[1]"},
	{"+time", "'TIME'"},
	{"+info", "'INFO', 'server'"},
	{"+publish", "'PUBLISH', KEYS[1], ''"},
	{"+pubsub|numsub", "'PUBSUB', 'NUMSUB', KEYS[1]"},
}

// Inspect looks at the servers with the eyes of the store's user: at what it may do
// with keys and channels of a cluster's name, and at how they are set up. It leaves
// nothing behind. An error says why they could not be asked at all.
func (c *Core) Inspect(ctx context.Context, name string) (cluster.Inspection, error) {
	var seen cluster.Inspection
	key := cluster.KeyOf(name, "forebay check")
	err := c.client.Over(ctx, key, func(do Do) error {
		info, err := c.info(ctx, do, &seen)
		if err != nil {
			return err
		}
		seen.Server, seen.TooOld = version(info)
		seen.Evicts = field(info, "maxmemory_policy")
		seen.Failover = failover(info)
		seen.Anonymous = field(info, "run_id") == ""
		return c.tryRights(ctx, do, key, &seen)
	})
	if err == nil {
		err = c.trySubscribe(ctx, key, &seen)
	}
	if err != nil {
		return cluster.Inspection{}, c.fault(ctx, err)
	}
	slices.Sort(seen.Missing)
	seen.Missing = slices.Compact(seen.Missing)
	return seen, nil
}

// info asks for everything, which may be refused.
func (c *Core) info(ctx context.Context, do Do, seen *cluster.Inspection) (string, error) {
	answer, err := do(ctx, []string{"INFO"})
	if c.note(err, seen) {
		return "", nil
	}
	text, _ := answer.(string)
	return text, err
}

// note keeps the right that an error says is missing, and reports whether it does.
func (c *Core) note(err error, seen *cluster.Inspection) bool {
	var refusal Refusal
	if !errors.As(err, &refusal) {
		return false
	}
	right := c.missing(string(refusal))
	if right == "" {
		return false
	}
	right, _, _ = strings.Cut(right, " ")
	seen.Missing = append(seen.Missing, right)
	return true
}

// tryRights calls all that the script calls, and the script itself.
func (c *Core) tryRights(ctx context.Context, do Do, key string, seen *cluster.Inspection) error {
	var script strings.Builder
	script.WriteString("local refused = {}\nlocal function try(right, answer)\n" +
		"  if type(answer) == 'table' and answer.err then refused[#refused + 1] = right .. ' ' .. answer.err end\nend\n")
	for _, p := range probes {
		fmt.Fprintf(&script, "try('%s', redis.pcall(%s))\n", p.right, p.call)
	}
	script.WriteString("return refused")
	answer, err := do(ctx, []string{"EVAL", script.String(), "1", key})
	if err != nil && !c.note(err, seen) {
		return err
	}
	refused, _ := answer.([]any)
	for _, r := range refused {
		if err := c.noteRefused(fmt.Sprint(r), seen); err != nil {
			return err
		}
	}
	_, err = do(ctx, []string{"EVALSHA", strings.Repeat("0", 40), "1", key})
	var refusal Refusal
	if errors.As(err, &refusal) && refusal.kind() == "NOSCRIPT" || c.note(err, seen) {
		return nil
	}
	return err
}

// noteRefused keeps what one refusal of a command of the script says: the right to call
// it, and why not.
func (c *Core) noteRefused(refused string, seen *cluster.Inspection) error {
	right, why, _ := strings.Cut(refused, " ")
	why = string(Refused(why))
	switch missing := c.missing(why); {
	case missing == keysRight, missing == channelsRight:
		right, _, _ = strings.Cut(missing, " ")
		seen.Missing = append(seen.Missing, right)
	case missing != "":
		seen.Missing = append(seen.Missing, right)
	case strings.Contains(why, "not allowed from script"), strings.Contains(why, "Unknown Redis command"):
		if right != "+info" && right != "+pubsub|numsub" { // the script can do without
			return Refusal(why)
		}
	default:
		return Refusal(why)
	}
	return nil
}

// trySubscribe subscribes to a channel for a moment.
func (c *Core) trySubscribe(ctx context.Context, channel string, seen *cluster.Inspection) error {
	sub, stop := context.WithCancel(ctx)
	defer stop()
	heard := false
	err := c.client.Subscribe(sub, []string{channel}, func() { heard = true; stop() }, func(cluster.Message) {})
	if heard || c.note(err, seen) {
		return nil
	}
	return err
}

// version returns which server it is, and why it cannot do.
func version(info string) (name, tooOld string) {
	for _, other := range []struct{ field, name string }{
		{"valkey_version", "Valkey"}, {"dragonfly_version", "Dragonfly"}, {"keydb_version", "KeyDB"}, {"garnet_version", "Garnet"},
	} {
		if v := field(info, other.field); v != "" {
			return other.name + " " + v, ""
		}
	}
	v := field(info, "redis_version")
	if v == "" {
		return "", ""
	}
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA == nil && errB == nil && (a < oldest[0] || a == oldest[0] && b < oldest[1]) {
		tooOld = fmt.Sprintf("it is version %s, and at least %d.%d is needed", v, oldest[0], oldest[1])
	}
	return "Redis " + v, tooOld
}

// failover returns what is wrong with how replicas are kept in step.
func failover(info string) string {
	replicas, _ := strconv.Atoi(field(info, "connected_slaves"))
	// The field is there only if min-replicas-to-write and min-replicas-max-lag are set.
	if replicas == 0 || field(info, "min_slaves_good_slaves") != "" {
		return ""
	}
	return fmt.Sprintf("it has %d %s and min-replicas-to-write 0: cut off from them it goes on lending while a replica that took over does so too; set min-replicas-to-write 1 and min-replicas-max-lag 2",
		replicas, plural(replicas, "replica"))
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
