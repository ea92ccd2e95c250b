module example.com/forebay/bench

go 1.26.0

require (
	example.com/forebay v0.0.0
	example.com/forebay/contrib/goredisstore v0.0.0
	example.com/forebay/contrib/redisstore v0.0.0
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/go-analyze/charts v0.6.4
	github.com/go-chi/chi/v5 v5.5.0
	github.com/go-kratos/aegis v0.2.0
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/platinummonkey/go-concurrency-limits v0.8.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/redis/rueidis/rueidiscompat v1.0.79
	golang.org/x/sync v0.25.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-analyze/bulk v0.1.6 // indirect
	github.com/go-ole/go-ole v1.2.6 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/influxdata/tdigest v0.0.1 // indirect
	github.com/lufia/plan9stats v0.0.0-20230110061619-bbe2e5e100de // indirect
	github.com/power-devops/perfstat v0.0.0-20221212215047-62379fc7944b // indirect
	github.com/shirou/gopsutil/v3 v3.23.2 // indirect
	github.com/tklauser/go-sysconf v0.3.11 // indirect
	github.com/tklauser/numcpus v0.6.0 // indirect
	github.com/yusufpapurcu/wmi v1.2.2 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/image v0.45.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	example.com/forebay => ..
	example.com/forebay/contrib/goredisstore => ../contrib/goredisstore
	example.com/forebay/contrib/redisstore => ../contrib/redisstore
)
