# Plain `go build ./...` and `go test ./...` work; these targets add the rest.

.PHONY: help build release site web fmt mcp-table compare test ci nightly install install-nightly fresh vuln screenshots soak bench

# Go's caches are in the home of the user, also where the environment names none.
ifndef HOME
export HOME := $(shell eval echo "~$$(id -un)")
endif


help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 24

build: ## bin/ken, with the documentation
	go run ./scripts/site -brief web/docs/site.zip
	CGO_ENABLED=0 go build -trimpath -o bin/ken ./cmd/ken

release: ## dist: all files of a release; VERSION=1.2.3, and URL=… NPM=… RELEASE_KEY=… as docs/releasing.md says
	@go run ./scripts/release -version "$(VERSION)" -url "$(URL)" -npm "$(or $(NPM),ken)"

site: ## dist/site: the documentation as files to publish
	go run ./scripts/site dist/site

web: ## web/dist, from the page's source; needs Node
	@bash .ci/web.sh build

fmt: ## gofmt every file
	gofmt -w .

test: ## go vet and the fast tests: needs Go and nothing else
	@go run ./scripts/tests test

ci: ## what must hold before a change lands; STEPS='race browser' runs only these steps
	@go run ./scripts/tests ci $(STEPS)

nightly: ## the rest: programs of others, chaos, installed packages, fuzzing; STEPS as above
	@go run ./scripts/tests nightly $(STEPS)

install: ## what make ci needs beside Go: Debian packages, as root, and packages from npm
	@bash .ci/install.sh

install-nightly: ## what make nightly needs
	@bash .ci/install.sh nightly

fresh: ## README's commands on a minimal Debian, as a user and as root; needs root and debootstrap
	@bash .ci/fresh.sh

vuln: ## known vulnerabilities in the code that Ken reaches; needs the network
	@bash .ci/vuln.sh

screenshots: build ## docs/pictures: the main views, as a browser shows them, and commands in a terminal
	go run ./scripts/record bin/ken docs/pictures
	KEN_TEST_BINARY=$(CURDIR)/bin/ken KEN_PICTURES=$(CURDIR)/docs/pictures go test -count=1 -v -run '^TestBrowserPictures' ./cmd/ken

mcp-table: ## docs/mcp-table.md: what of MCP survives behind Ken; GATEWAYS='NAME=COMMAND' prints others beside it
	KEN_GATEWAYS='$(GATEWAYS)' go test -count=1 $(if $(GATEWAYS),-v) -run '^TestPassThrough$$' ./internal/testkit/mcptest -update

compare: ## docs/benchmarks.md: Ken beside other gateways, in one run; GATEWAYS='NAME=COMMAND' adds others
	@GATEWAYS='$(GATEWAYS)' bash .ci/compare.sh

soak: ## fuzz every target for FUZZTIME (10m), then the long tests; kept in docs/measured.md
	@bash .ci/soak.sh

bench: ## every benchmark against docs/bars.txt; kept in docs/measured.md
	@bash .ci/bench.sh
