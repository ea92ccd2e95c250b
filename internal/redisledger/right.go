package redisledger

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	deniedCommand = regexp.MustCompile(`^NOPERM .*permissions to run the '([^']+)' command`)
	deniedKey     = regexp.MustCompile(`^NOPERM .*\b(a key|the keys)\b`)
	deniedChannel = regexp.MustCompile(`^NOPERM .*\b(a channel|the channels)\b`)
	atLine        = regexp.MustCompile(`user_script:(\d+)`)
	calls         = regexp.MustCompile(`redis\.p?call\(\s*['"](\w+)['"](?:\s*,\s*['"](\w+)['"])?`)
)

const (
	keysRight     = "~NAME:* (the keys; NAME is the cluster's)"
	channelsRight = "&NAME:* (the channels; NAME is the cluster's)"
)

// missing returns the right that is missing when the server answers text, as an ACL
// writes it, empty if that is not what it says. From within a script the server does
// not name the command, but the line.
func (c *Core) missing(text string) string {
	if m := deniedCommand.FindStringSubmatch(text); m != nil {
		return "+" + m[1]
	}
	switch {
	case strings.Contains(text, "can't publish to the channel"), deniedChannel.MatchString(text):
		return channelsRight
	case strings.Contains(text, "can't access at least one of the keys"), deniedKey.MatchString(text):
		return keysRight
	case !strings.Contains(text, "can't run this command"):
		return ""
	}
	if m := atLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		lines := strings.Split(c.source, "\n")
		if n >= 1 && n <= len(lines) {
			if call := calls.FindStringSubmatch(lines[n-1]); call != nil {
				return rightFor(call[1], call[2])
			}
		}
	}
	return "to every command of the script (forebay check lists those that are missing)"
}

// rightFor returns the right to call a command from the script.
func rightFor(command, argument string) string {
	right := "+" + strings.ToLower(command)
	if command == "PUBSUB" {
		right += "|" + strings.ToLower(argument)
	}
	return right
}
