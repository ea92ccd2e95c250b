package rivals

// Rival is one way to limit, through one client library.
type Rival struct {
	Name   string // "KIND, CLIENT"
	Kind   string // "token list", "lease set", "counter" or "redsync"
	Client string // "rueidis", "go-redis" or "go-redis pipelined"
	Wakes  bool   // a waiting caller is woken; the others ask again and again
	Open   func(Config) (Semaphore, error)
}

// The kinds.
const (
	TokenList = "token list" // EXISTS, BLPOP, LPUSH
	LeaseSet  = "lease set"  // a script on a sorted set, ZREM
	Counter   = "counter"    // a script around INCR, DECR
	Redsync   = "redsync"    // a lock for each slot
)

// The clients.
const (
	Rueidis          = "rueidis"            // as it comes: it pipelines
	GoRedis          = "go-redis"           // a pool of connections
	GoRedisPipelined = "go-redis pipelined" // its experimental AutoPipeline
)

// limiters are the ways to limit that only need commands.
var limiters = []struct {
	kind  string
	wakes bool
	open  func(client, Config) Semaphore
}{
	{TokenList, true, newTokenList},
	{LeaseSet, false, newLeaseSet},
	{Counter, false, newCounter},
}

// clients are the ways to send commands.
var clients = []struct {
	name    string
	connect func(Config) (client, error)
}{
	{Rueidis, connectRueidis},
	{GoRedis, connectGoRedis},
	{GoRedisPipelined, connectPipelined},
}

// All returns every rival.
func All() (all []Rival) {
	for _, l := range limiters {
		for _, c := range clients {
			all = append(all, Rival{Kind: l.kind, Client: c.name, Wakes: l.wakes, Open: func(config Config) (Semaphore, error) {
				conn, err := c.connect(config)
				if err != nil {
					return nil, err
				}
				return l.open(conn, config), nil
			}})
		}
	}
	all = append(all,
		Rival{Kind: Redsync, Client: Rueidis, Open: openRedsyncRueidis},
		Rival{Kind: Redsync, Client: GoRedis, Open: openRedsyncGoRedis},
	)
	for i := range all {
		all[i].Name = all[i].Kind + ", " + all[i].Client
	}
	return all
}

// Find returns the rival of a name.
func Find(name string) (Rival, bool) {
	for _, r := range All() {
		if r.Name == name {
			return r, true
		}
	}
	return Rival{}, false
}
