# The README begins with `make build` and `make test`.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.1.4
FUZZTIME ?= 20s
SEEDS ?= 10000
FIRST ?= 0
FAULTS ?= 200
SEED ?= 0
SCALE ?= 1
ROUNDS ?= 5
# The systems that releases are for.
SYSTEMS ?= linux/amd64 linux/arm64 darwin/arm64 darwin/amd64
HOMEPAGE ?= https://example.org/dcs-tui
PREFIX ?= /usr/local
export SYSTEMS HOMEPAGE

.PHONY: build cross test faults sweep lint comments lines sim mutations vuln fuzz fuzz-parsers bench papers compare screenshots man notices install dist dist-check clean

build: ## the static program, ./dcs-tui, with the programs that it copies to hosts
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && scripts/host-programs "$$dir" && \
		CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -overlay "$$dir/overlay.json" -o dcs-tui .

# go vet also reads the tests, and takes longer than go build, so it runs once for each operating
# system. make lint vets for this one.
cross: ## build the program for the other systems on which it runs, and vet it for two of them
	@for s in $(filter-out linux/amd64,$(SYSTEMS)) freebsd/amd64; do \
		echo "build $$s"; \
		CGO_ENABLED=0 GOOS=$${s%/*} GOARCH=$${s#*/} go build -o /dev/null . || exit 1; \
	done
	@for s in darwin/arm64 freebsd/amd64; do \
		echo "vet $$s"; \
		CGO_ENABLED=0 GOOS=$${s%/*} GOARCH=$${s#*/} go vet ./... || exit 1; \
	done

dcs-tui:
	@$(MAKE) build

install: dcs-tui ## program, manual pages, completions, and documentation below PREFIX (/usr/local); builds only what is missing
	scripts/install-files ./dcs-tui "$(DESTDIR)$(PREFIX)"

# Many tests start the program. The test cache does not notice that the program has changed, hence
# -count=1.

# With LONG=1 the tests are not vetted, because make lint does more. -p 4 is for tests that wait.

# These packages start the program hundreds of times. With the race detector it takes six times as
# long to start, so LONG=1 runs them without it; `go test -race ./...` runs everything with it.
MANY_STARTS = internal/cli|internal/e2e|internal/faults|internal/labfs|internal/screentest

test: ## tests with a real sshd (installed from Debian's packages when root); LONG=1: all but `make faults`, most also with the race detector
	@scripts/need-sshd
ifdef LONG
	@scripts/slurm-lab install || echo "the test over a real Slurm is left out"
	@scripts/need-package chromium which chromium
	@scripts/need-package python3-optuna /usr/bin/python3 -c 'import optuna'
	@scripts/need-package python3-cloudpickle /usr/bin/python3 -c 'import cloudpickle'
	@scripts/need-package snakemake which snakemake
	@scripts/need-snakemake
	@scripts/need-package qemu-user-static which qemu-aarch64-static
	@scripts/need-package parallel sh -c 'parallel --version | grep -q "^GNU parallel"'
	DCS_REQUIRE_SSHD=1 go test -count=1 -vet=off -p 4 -timeout 3h $$(go list ./... | grep -v internal/faults)
	GORACE="atexit_sleep_ms=50 $$GORACE" DCS_REQUIRE_SSHD=1 go test -race -short -vet=off -p 4 -timeout 3h \
		$$(scripts/concurrent-packages | grep -Ev '$(MANY_STARTS)')
else
	DCS_REQUIRE_SSHD=1 go test -short -count=1 -p 4 -timeout 60m ./... # many tests wait
endif

faults: ## FAULTS random faults (SEED repeats them) and the targeted ones, on labs of real ssh hosts in namespaces; needs root
	@scripts/need-faults
	DCS_REQUIRE_FAULTS=1 go test -count=1 -timeout 24h -v -parallel 6 ./internal/faults -faults $(FAULTS) -seed $(SEED) $(if $(KEEP),-keep $(KEEP))

sweep: ## every file-system call of helper and supervisor fails once, in every way, or is the last of its process (hours)
	go test -count=1 -timeout 24h ./hosts/helper/remote -run TestEveryFileSystemCallFails -v -sweep

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

comments: ## N comments (100) chosen at random by SEED, to be read against the rules of CONTRIBUTING.md
	@SEED=$(SEED) scripts/comments

lines: ## lines of each package, with and without tests, and the totals
	@scripts/lines

sim: ## simulate worlds with about 50 faults each, and a fifth as many each whose journals end early, and with bad hosts: make sim SEEDS=100000 FIRST=1; SMALL=1: only small worlds, 20 for the time of one
	go test ./dispatch/sim -run '$(if $(SMALL),TestSmall,TestSeeds|TestCuts|TestBadHosts)' -v -timeout 0 \
		-seeds $(SEEDS) -first $(FIRST)

mutations: ## deliberate defects, which the simulator must find; docs/internals/mutations.md is the table
	go test ./dispatch/sim -run TestMutations -v -count=1 -timeout 3h

vuln: ## known vulnerabilities (needs the vulnerability database)
	go run $(GOVULNCHECK) ./...

fuzz: ## every fuzz target for FUZZTIME
	@scripts/fuzz-all $(FUZZTIME)

fuzz-parsers: ## jobs file, inventory, frames, journal, sentinel, requests, templates, what cleans text, and the simulator's choices, for FUZZTIME each
	@scripts/fuzz-all $(FUZZTIME) '^./(jobs|hosts) FuzzParse$$|FuzzStream|FuzzJournal|FuzzDecode$$|FuzzClean$$|FuzzChoices|FuzzRequest|FuzzTemplate'

bench: build ## throughput, gaps, efficiency, memory beside xargs -P; the screen; writes bench/
	@scripts/need-sshd
	go run ./bench
	go test ./dispatch/sched -run - -bench Fleet -benchtime 1x

papers: build ## the papers' experiments, ROUNDS (5) of each, at SCALE of their length (1); writes docs/internals/papers.md; goes on where it stopped
	@scripts/need-sshd
	go run ./bench -papers -rounds $(ROUNDS) -scale $(SCALE)

compare: build ## the same jobs through dcs-tui, GNU parallel, xargs, HyperQueue, dask, Parsl, and pools of Python; writes the table of docs/compare.md
	@scripts/need-sshd
	@scripts/need-package parallel sh -c 'parallel --version | grep -q "^GNU parallel"'
	@scripts/compare-pools .compare
	go run ./bench -compare -rounds 3 -o docs/compare.md

screenshots: ## docs/screens: pictures of the screen from a real run on a lab of sshd servers
	@scripts/screenshots

man: build ## man/: a manual page for each command
	./dcs-tui man --dir man

notices: ## THIRD_PARTY_NOTICES: licenses of all modules that are linked, after a change of go.mod
	scripts/notices > THIRD_PARTY_NOTICES.new
	mv THIRD_PARTY_NOTICES.new THIRD_PARTY_NOTICES

dist: ## a release of this commit and its tag in dist/, for SYSTEMS: archives, packages, SBOMs, formula, and sums
	@scripts/dist

dist-check: ## builds the release twice, compares the bytes, and tries it (minutes)
	@scripts/dist-check

clean:
	rm -rf dcs-tui man dist
