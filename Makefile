# Everything a clone needs beyond Go, git, make and a C compiler is brought here, pinned, into build/.
# `make` alone prints what there is.

GO        ?= go
# Extra flags for every go test, for instance TESTFLAGS='-run TestBurst -v'.
TESTFLAGS ?=
# Time given to each fuzz target by fuzz-short.
FUZZTIME  ?= 10s
# The commit whose API `make breaking` compares with.
BASE      ?= main

BIN    := build/bin
TOOLS  := build/tools
PROTOS := build/protos
API    := proto/plimsoll/v1

BUF      := $(TOOLS)/buf
GOLANGCI := $(TOOLS)/golangci-lint
GRPCURL  := $(TOOLS)/grpcurl
PLUGINS  := $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc \
            $(TOOLS)/protoc-gen-grpc-gateway $(TOOLS)/protoc-gen-openapiv2

# A go.work above the clone would pull the nested modules (tools, control planes) into one build and mix their pins.
export GOWORK := off
# buf finds its local plugins here, and the demo its grpcurl.
export PATH := $(CURDIR)/$(TOOLS):$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##
## Build
##

# Without gRPC's trace pages, and the templates that they need, the linker can drop the methods that nobody calls: a fifth
# of the hub's binary, and 10 MB of its resident memory.
TAGS := grpcnotrace

.PHONY: build
build: ## Build the hub and the CLI into build/bin
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -o $(BIN)/ ./cmd/plimsoll-hub ./cmd/plimsoll

.PHONY: generate
generate: $(BUF) $(PLUGINS) $(PROTOS)/.stamp ## Generate Go, gateway and OpenAPI from proto/
	$(BUF) generate

.PHONY: testbed
testbed: ## Build the control planes that tests, demo and bench run on (4 minutes the first time)
	bash test/kube/controlplane/build.sh

.PHONY: clean
clean: ## Remove build/, the tools and the control planes included
	rm -rf build

##
## Check
##

.PHONY: verify
verify: verify-generated verify-format verify-modules vet lint ## Check that all generated and formatted code is current, and lint

.PHONY: verify-generated
verify-generated: $(BUF) $(PLUGINS) $(PROTOS)/.stamp ## Check that what proto/ generates is what is committed
	@rm -rf build/verify
	$(BUF) generate -o build/verify
	@sh tools/protos/compare.sh build/verify/$(API) $(API)

.PHONY: verify-format
verify-format: $(BUF) $(PROTOS)/.stamp ## Check that every Go file is as gofmt -s leaves it, and proto/ as buf format does
	@bad=$$(find . -path ./build -prune -o -name '*.go' -exec gofmt -s -l {} +) || exit 1; \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -s -w on:"; echo "$$bad"; exit 1; fi
	$(BUF) format --diff --exit-code proto

.PHONY: verify-modules
verify-modules: ## Check that go.mod and go.sum say what the code imports
	$(GO) mod tidy -diff

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

.PHONY: lint
lint: $(BUF) $(GOLANGCI) $(PROTOS)/.stamp ## Lint proto/ and the Go code
	$(BUF) lint
	$(GOLANGCI) run --allow-parallel-runners ./...

.PHONY: breaking
breaking: $(BUF) $(PROTOS)/.stamp ## Check that the API breaks nobody who uses the one at BASE (default: main)
	@rm -rf build/base && mkdir -p build/base/$(PROTOS) && cp -R $(PROTOS)/. build/base/$(PROTOS)
	@for file in $$(git ls-tree -r --name-only $(BASE) buf.yaml proto); do \
		mkdir -p "build/base/$$(dirname "$$file")" && git show "$(BASE):$$file" >"build/base/$$file" || exit 1; \
	done
	$(BUF) breaking --against build/base

##
## Test
##

.PHONY: test
test: testbed ## Run all tests: the unit tests, then those on real control planes
	$(MAKE) test-unit
	$(MAKE) test-integration

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane
	$(GO) test -race -timeout 5m $(TESTFLAGS) $$($(GO) list ./... | grep -v /test/)

# One package at a time: each starts its own clusters, and a 2-core machine carries one set of them.
.PHONY: test-integration
test-integration: testbed build ## Run the tests on real control planes
	$(GO) test -race -timeout 20m -p 1 $(TESTFLAGS) \
		$$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./test/...)

.PHONY: fuzz-short
fuzz-short: ## Run every fuzz target for FUZZTIME (default: 10s)
	@for package in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

##
## See it run
##

.PHONY: demo
demo: build testbed $(GRPCURL) ## Start a hub and three clusters, and show replicas move until Ctrl-C
	$(GO) build -o $(BIN)/demo ./test/demo
	$(BIN)/demo

.PHONY: demo-check
demo-check: build testbed $(GRPCURL) ## Do what demo does, check it, and exit
	$(GO) build -o $(BIN)/demo ./test/demo
	$(BIN)/demo -check

.PHONY: bench
bench: build testbed ## Measure what the project promises, and write build/bench.json
	$(GO) build -o $(BIN)/bench ./test/bench
	$(BIN)/bench

##
## Pinned tools: tools/ holds those that resolve together, tools/lint the one that does not.
##

tool-package = $(shell awk '/^tool \(/ { inside = 1; next } /^\)/ { inside = 0 } inside && $$1 ~ /\/$(1)$$/ { print $$1 }' $(2)/go.mod)

.PHONY: tools
tools: $(BUF) $(PLUGINS) $(GRPCURL) $(GOLANGCI) ## Build every pinned tool into build/tools

$(BUF) $(PLUGINS) $(GRPCURL): $(TOOLS)/%: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && CGO_ENABLED=0 $(GO) build -o ../$@ $(call tool-package,$*,tools)
	@touch $@

$(GOLANGCI): tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(TOOLS)
	cd tools/lint && CGO_ENABLED=0 $(GO) build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(PROTOS)/.stamp: tools/protos/go.mod tools/protos/go.sum tools/protos/copy.sh
	sh tools/protos/copy.sh $(PROTOS)
	@touch $@
