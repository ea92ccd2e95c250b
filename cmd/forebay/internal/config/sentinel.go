package config

import "strconv"

// Sentinel is who this program is to the Sentinels, which have users of their own. The
// zero value shows nothing.
type Sentinel struct {
	Username     string   // empty: the default user
	PasswordFile string   // as written; empty: they want none
	Password     Password // the content of PasswordFile
}

// Password is one that is printed nowhere, by no means.
type Password string

// String returns a word in its place.
func (p Password) String() string {
	if p == "" {
		return ""
	}
	return "PASSWORD"
}

// GoString returns what String does, for %#v.
func (p Password) GoString() string { return strconv.Quote(p.String()) }

// MarshalText returns what String does, for JSON and logs.
func (p Password) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// sentinelPassword reads the password from a file, whose content is shown to nobody.
func (r *clusterReader) sentinelPassword(v value, s *Sentinel) {
	file, ok := r.text(v, "a path such as /etc/forebay/sentinel.password")
	if !ok {
		return
	}
	s.PasswordFile = file
	if line, ok := r.secretFile(v, "write the password into it in one line, readable for this program alone"); ok {
		s.Password = Password(line)
	}
}

// checkWay finds what is said of a way to Redis that its URL does not take. A URL that is
// wrong is not judged again.
func (r *clusterReader) checkWay(there map[string]Pos) {
	c := r.config.Cluster
	if c.Redis == "" {
		return
	}
	if _, secure, _ := c.Redis.Reached(); !secure && there["tls"] != (Pos{}) {
		r.wrongAt(there["tls"], "tls is given, and the URL of Redis does without", "write rediss://HOST:PORT there, or leave tls out")
	}
	user, password := there["sentinel_username"], there["sentinel_password_file"]
	const other = "add &master_set=NAME to the URL if its servers are Sentinels, or leave it out"
	switch {
	case user != Pos{} && !c.Redis.namesSentinels():
		r.wrongAt(user, "sentinel_username is given, and the URL of Redis names no Sentinels", other)
	case password != Pos{} && !c.Redis.namesSentinels():
		r.wrongAt(password, "sentinel_password_file is given, and the URL of Redis names no Sentinels", other)
	case user != Pos{} && password == Pos{}:
		r.wrongAt(user, "sentinel_username is given without a password", "write sentinel_password_file as well, or leave it out")
	}
}
