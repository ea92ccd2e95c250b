# Everything here needs Go, git and make. A C compiler is used when there is
# one: the race detector wants it on Linux.

GO          ?= go
DEMO        ?= --once --for 6s
BENCH_GATE  ?= $(GO) run . gate
BENCH_CLUSTER ?= $(GO) run . cluster --strict
BENCH_CONTROL ?= $(GO) run ./control --strict
BENCH_LANES ?= $(GO) run ./lanes --strict
BENCH_PROXY ?= $(GO) run . proxy --strict
FUZZTIME    ?= 60s
SMOKETIME   ?= 3s
MUTATE      ?=
STRESS      ?= 10000000
CHAOS       ?=
COVER_MIN   ?= 95
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
PLATFORMS   ?= windows/amd64 darwin/arm64 linux/386
MODULES     := $(shell awk '{ sub(/\/\/.*/, ""); for (i = 1; i <= NF; i++) if ($$i ~ /^\.(\/|$$)/) print $$i }' go.work)
RACE        := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# $(call each,COMMAND) runs a command in every module and stops at the first
# that fails.
each = @set -e; for m in $(MODULES); do echo "== $$m: $(strip $(1))"; (cd $$m && $(1)); done

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":[^#]*## " } /^[a-z0-9-]+:[^#]*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "modules: $(MODULES)"

.PHONY: run
run: ## See a backend collapse, and stay up with forebay before it; Ctrl-C ends it
	@mkdir -p bin; $(GO) build -o bin/forebay ./cmd/forebay
	bin/forebay demo

.PHONY: demo
demo: ## The same in short, and fail if forebay made no difference
	@mkdir -p bin; $(GO) build -o bin/forebay ./cmd/forebay
	bin/forebay demo $(DEMO)

.PHONY: burst
burst: ## The library alone under a burst, in one process
	$(GO) run ./examples/burst

.PHONY: test
test: setup format vet staticcheck race faults alone e2e demo chaos-short control-short cover smoke mutate-core ## Run what CI runs: all of check but cross, real servers, demo, faults, limits, coverage, fuzz smoke, mutants of the core
	@echo "== all good"

.PHONY: check
check: format vet staticcheck race alone cross ## Before you hand in: format, vet, staticcheck, race, alone, cross

.PHONY: setup
setup: ## Download what the modules and the checks need; Debian's servers if we may
	@scripts/servers
	$(call each,$(GO) list -deps -test ./... >/dev/null)
	@echo "== $(STATICCHECK)"; $(GO) run $(STATICCHECK) -version

.PHONY: format
format: ## Fail if gofmt would change a file
	@echo "== gofmt -s -l ."; bad=$$(gofmt -s -l .); test -z "$$bad" || { echo "not formatted:"; echo "$$bad"; exit 1; }

.PHONY: vet
vet: ## Run go vet in every module
	$(call each,$(GO) vet ./...)

.PHONY: staticcheck
staticcheck: ## Run staticcheck, pinned, in every module
	$(call each,$(GO) run $(STATICCHECK) ./...)

.PHONY: race
race: ## Run all tests, examples, fuzz seeds and the lint under the race detector
	@test -n "$(RACE)" || echo "== NO C COMPILER: the tests run without the race detector"
	$(GO) test $(RACE) -count=1 $(MODULES:%=%/...)

.PHONY: faults
faults: ## All simulated faults of clustered gates, of which race runs a third
	$(GO) test -count=1 ./cluster

.PHONY: e2e
e2e: ## The real program, before and behind real servers where they are installed
	@mkdir -p bin; $(GO) build -o bin/forebay ./cmd/forebay
	cd examples/shop && FOREBAY_BIN="$(CURDIR)/bin/forebay" $(GO) test -count=1 ./gunicorn_test

.PHONY: lint
lint: ## Run the repository's own rules only
	$(GO) test -count=1 ./internal/lint/...

.PHONY: alone
alone: ## Check that every module builds and is tidy without go.work
	$(call each,GOWORK=off $(GO) mod tidy -diff && GOWORK=off $(GO) build ./...)

.PHONY: cross
cross: ## Type-check every module and its tests for Windows, macOS and 32-bit Linux
	@set -e; for p in $(PLATFORMS); do for m in $(MODULES); do \
		echo "== $$m: go vet for $$p"; \
		(cd $$m && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./...); \
	done; done

.PHONY: cover
cover: ## Fail if the tests of internal/admit cover too little of it (COVER_MIN=95)
	@set -e; profile=$$(mktemp); trap 'rm -f "$$profile"' EXIT; \
	$(GO) test -coverprofile="$$profile" -coverpkg=./internal/admit ./internal/admit; \
	$(GO) tool cover -func="$$profile" | awk -v min=$(COVER_MIN) '$$NF != "100.0%" { print } \
		$$1 == "total:" { sub(/%/, "", $$NF); low = $$NF + 0 < min } \
		END { if (low) { print "coverage is below " min "%"; exit 1 } }'

.PHONY: fuzz
fuzz: ## Run each fuzz target in turn (FUZZTIME=60s)
	@GO="$(GO)" scripts/fuzz $(FUZZTIME)

.PHONY: smoke
smoke: ## Run each fuzz target for a moment (SMOKETIME=3s)
	@GO="$(GO)" scripts/fuzz $(SMOKETIME)

.PHONY: stress
stress: ## Ten million operations on two gates at once, under the race detector (STRESS=10000000)
	$(GO) test $(RACE) -count=1 -v -run 'TestHardBound|TestNoWakeUpIsLost' . -ops $(STRESS)

.PHONY: mutate
mutate: mutate-library mutate-program ## Remove each release site in turn, for half an hour or two; some test must fail

.PHONY: mutate-library
mutate-library: ## The same for the library alone (MUTATE="-only gate.go")
	$(GO) run ./internal/lint/mutate $(MUTATE)

.PHONY: mutate-program
mutate-program: ## The same for the proxy and its connections (MUTATE="-only internal/proxy/spool")
	$(GO) run ./internal/lint/mutate -part program -short=false $(MUTATE)

.PHONY: mutate-core
mutate-core: ## The same for the admission core alone, a third of the library's
	$(GO) run ./internal/lint/mutate -dirs internal/admit

.PHONY: bench-gate
bench-gate: ## Compare the gate with its peers and check the ratios (BENCH_GATE="go run . gate")
	cd bench && $(BENCH_GATE)

.PHONY: bench-cluster
bench-cluster: ## Compare clustered gates with their rivals on a real Redis; fail if a target is missed (BENCH_CLUSTER="go run . cluster --strict")
	cd bench && $(BENCH_CLUSTER)

.PHONY: bench-proxy
bench-proxy: ## Compare the program with nginx, HAProxy and Caddy; fail if a target is missed (BENCH_PROXY="go run . proxy --strict")
	@scripts/servers bench
	cd bench && $(BENCH_PROXY)

.PHONY: bench-lanes
bench-lanes: ## Show who is served when there is too much, in simulated time; fail if a pass line is missed (BENCH_LANES="go run ./lanes --strict")
	cd bench && $(BENCH_LANES)

.PHONY: bench-control
bench-control: ## Compare limits that find themselves, in simulated time; fail if a pass line is missed (BENCH_CONTROL="go run ./control --strict")
	cd bench && $(BENCH_CONTROL)

.PHONY: bench-control-real
bench-control-real: ## The program with a limit that finds itself before the shop, against a sweep of numbers, on this machine
	cd bench && $(GO) run ./control --real --strict

.PHONY: control-short
control-short: ## The same in short, in simulated time, so that no machine is too slow for it
	cd bench && $(GO) run ./control --short --strict

.PHONY: soak
soak: ## Put the program under wrk, h2load and slow clients for a minute each; fail if anything is left behind
	@scripts/servers bench
	cd bench && $(GO) run . soak --strict

.PHONY: chaos
chaos: ## Put one limit over several processes through everything that goes wrong, beside its rivals; write docs/cluster-faults.md
	cd bench && $(GO) run ./chaos $(CHAOS)
	cd cmd/forebay && $(GO) test -count=1 -run TestClusterInTurmoil ./e2e -rounds 40

.PHONY: chaos-short
chaos-short: ## The faults in which most would show, in about a minute, if there is a redis-server
	cd bench && $(GO) run ./chaos --short

.PHONY: docs
docs: ## Rewrite the generated parts of the docs
	$(call each,$(GO) generate ./...)
	$(GO) test ./internal/lint -count=1 -run 'TestRepository/namesUpToDate' -update

.PHONY: rename
rename: ## Move the module path everywhere: make rename MODULE=host/owner/name
	@test -n "$(MODULE)" || { echo "usage: make rename MODULE=host/owner/name"; exit 2; }
	@GO="$(GO)" scripts/rename "$(MODULE)"
