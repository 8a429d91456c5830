# Everything a developer or a CI runs. It needs Go, make and a POSIX shell; `make race` needs a C compiler too.

BINARIES := catenary writer projector engine agent
GO       := go
# Longest time for one package's tests, and for each fuzz target.
TEST_TIMEOUT := 4m
FUZZ_TIME    := 10s
# Shortest time for one benchmark: long enough that the ratios of two runs agree.
BENCH_TIME   := 1s
# How many histories of rollouts to simulate, and from which seed.
SEEDS        := 20000
FROM         := 1
# How often to kill something at a named moment of a step.
KILLS        := 6
# How long to break whole chains, for a start and in earnest.
FAULT_SHORT  := 3m
FAULT_LONG   := 2h
# Flags of the program that breaks them, such as -seed 42 or -h.
FAULT_FLAGS  :=
# Flags of the program that measures the chain, such as -rows 'import' or -runs 9.
BENCH_FLAGS  :=

.DEFAULT_GOAL := help
.PHONY: help run build test simulate kills fault-short fault race lint verify bench microbench fuzz

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' Makefile | while IFS='	' read -r target line; do printf '  make %-11s %s\n' "$$target" "$$line"; done

run: build ## build it and start a working chain with a small demo fleet (^C ends it)
	./bin/catenary up --demo

build: ## build the binaries into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ $(BINARIES:%=./cmd/%)

test: ## run all tests
	$(GO) test -timeout $(TEST_TIMEOUT) ./...

simulate: ## let SEEDS rollout histories run from seed FROM, and judge each (as SEEDS=100000)
	$(GO) test -count=1 -timeout 0 -run 'TestSeeds' -v ./rollout/simulate -seeds $(SEEDS) -from $(FROM)

kills: ## kill agents, engines, writers and servers at named moments of steps, KILLS times (as KILLS=200)
	$(GO) test -count=1 -timeout 0 -tags failpoints -run 'TestStepsKilled|WrongClock' -v ./integration -step-kills $(KILLS)

fault-short: ## break whole chains from many seeds for FAULT_SHORT, and judge what is left
	$(GO) run ./integration/fault -for $(FAULT_SHORT) $(FAULT_FLAGS)

fault: ## break whole chains from many seeds for FAULT_LONG, full disks and three servers among them
	$(GO) run ./integration/fault -for $(FAULT_LONG) -disk $(FAULT_FLAGS)

race: ## run all tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 10m ./...

lint: ## check format, vet, staticcheck and exhaustive event switches
	@unformatted="$$("$$($(GO) env GOROOT)/bin/gofmt" -l .)" || exit 1; if [ -n "$$unformatted" ]; then echo "gofmt would change:" >&2; echo "$$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags failpoints ./integration ./internal/failpoint
	$(GO) tool staticcheck ./...
	$(GO) tool go-check-sumtype ./...

verify: build lint ## check what a release needs: build, lint, go.mod, import table, style, docs
	$(GO) mod tidy -diff
	$(GO) test -count=1 .

bench: ## measure the chain beside bare nats.go, and print what reaches its figure (some minutes; BENCH_FLAGS=-h)
	$(GO) run ./internal/hammer/bench $(BENCH_FLAGS)

microbench: ## run the benchmarks of all packages
	$(GO) test -run '^$$' -bench . -benchtime $(BENCH_TIME) -timeout 30m ./...

fuzz: ## run each fuzz target for a short time
	@set -e; grep -rn --include='*_test.go' '^func Fuzz' . | sed 's|^\(.*\)/[^/]*:[0-9]*:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|' | while read -r dir target; do \
		echo "$$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) "$$dir" </dev/null; \
	done
