# Plain `go build ./...` and `go test ./...` work; these targets add the rest.

.PHONY: help build fmt test check test-unit test-script test-postgres soak bench

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 24

build: ## bin/ken
	CGO_ENABLED=0 go build -trimpath -o bin/ken ./cmd/ken

fmt: ## gofmt every file
	gofmt -w .

test: ## every layer; installs what it needs where it may, and says what it skipped
	@bash .ci/test.sh all

check: ## layer 0: format, tidy, vet, staticcheck, layers
	@bash .ci/test.sh check

test-unit: ## layer 1: go test -race -short ./...
	@bash .ci/test.sh unit

test-script: ## layer 2: testdata/script on one race-built binary
	@bash .ci/test.sh script

test-postgres: ## layer 3: what needs a PostgreSQL server, on a cluster of its own
	@bash .ci/test.sh postgres

soak: ## fuzz every target for FUZZTIME (10m), then the long tests; kept in docs/measured.md
	@bash .ci/soak.sh

bench: ## every benchmark against docs/bars.txt; kept in docs/measured.md
	@bash .ci/bench.sh
