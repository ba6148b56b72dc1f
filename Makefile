# Plain `go build ./...` and `go test ./...` work; these targets add the rest.

.PHONY: help build release site web fmt mcp-table compare test check vuln test-unit test-script test-postgres test-browser release-test clients screenshots soak bench

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

test: ## every layer; says what is missing and what it skipped; INSTALL=1 installs it first
	@bash .ci/test.sh all

check: ## layer 0: format, tidy, vet, platforms, staticcheck, vulnerabilities, layers
	@bash .ci/test.sh check

vuln: ## known vulnerabilities in the code that Ken reaches; needs the network
	@bash .ci/vuln.sh

test-unit: ## layer 1: go test -race -short ./..., and arithmetic over corpora without -race
	@bash .ci/test.sh unit

test-script: ## layer 2: testdata/script on one race-built binary
	@bash .ci/test.sh script

test-postgres: ## layer 3: what needs a PostgreSQL server, on a cluster of its own
	@bash .ci/test.sh postgres

test-browser: ## layer 4: the page in a real Chromium
	@bash .ci/test.sh browser

release-test: ## layer 5: a release for this machine, made twice, installed and run
	@bash .ci/test.sh release

clients: ## every MCP client from npm through Ken, and its tokens; INSTALL=1 installs them (1.6 GB)
	@bash .ci/test.sh clients

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
