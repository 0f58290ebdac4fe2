# Everything a clone needs beyond Go, git, make and (for the race detector) a C compiler is built here, pinned, into build/.
# `make` alone prints what there is.

GO        ?= go
# Extra flags for every go test, for instance TESTFLAGS='-run TestBurst -v'.
TESTFLAGS ?=
# Packages that `make test` and `make cover` are about, for instance PKG=./reconcile/spot. Default: all.
PKG       ?=
# Time given to each fuzz target: 10s by fuzz-short, 1m by fuzz.
FUZZTIME  ?=
# The commit that `make presubmit`, and `make breaking` for the API, compare with.
BASE      ?= main

BIN    := build/bin
TOOLS  := build/tools
PROTOS := build/protos
API    := proto/plimsoll/v1
KINDS  := reconcile/webapp reconcile/fleet

BUF      := $(TOOLS)/buf
GOLANGCI := $(TOOLS)/golangci-lint
GRPCURL  := $(TOOLS)/grpcurl
VULN     := $(TOOLS)/govulncheck
KINDGEN  := $(TOOLS)/controller-gen
PLUGINS  := $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc \
            $(TOOLS)/protoc-gen-grpc-gateway $(TOOLS)/protoc-gen-openapiv2

# A go.work above the clone would pull the nested modules (tools, control planes) into one build and mix their pins.
export GOWORK := off
# buf finds its local plugins here, and the demo its grpcurl.
export PATH := $(CURDIR)/$(TOOLS):$(PATH)
# Everything is compiled in one way, so that what one step has compiled serves the next, in every clone. Only the race
# detector needs C.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
# Its arguments: the packages as one, then the flags.
RACE := GO="$(GO)" sh tools/race.sh

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##
## Build
##

# Without gRPC's trace pages, and the templates that they need, the linker can drop the methods that nobody calls: a fifth
# of the hub's binary, and 10 MB of its resident memory.
TAGS := grpcnotrace

.PHONY: build
build: ## Build the hub and the CLI into build/bin
	@mkdir -p $(BIN)
	$(GO) build -tags $(TAGS) -o $(BIN)/ ./cmd/plimsoll-hub ./cmd/plimsoll

.PHONY: generate
generate: $(BUF) $(PLUGINS) $(PROTOS)/.stamp $(KINDGEN) ## Generate Go, gateway and OpenAPI from proto/, CRDs and copies from the kinds
	$(BUF) generate
	$(GO) test ./$(API) -run 'TestTheReference|TestTheOpenAPIDocument' -update
	for kinds in $(KINDS); do \
		$(KINDGEN) $(CRDS) paths=./$$kinds/... output:crd:dir=$$kinds/crd && $(KINDGEN) object paths=./$$kinds/... || exit 1; \
	done
	cp reconcile/fleet/crd/fleet.plimsoll.dev_fleetplacements.yaml deploy/chart/plimsoll/files/fleetplacements.yaml

CRDS := crd:crdVersions=v1,maxDescLen=200

.PHONY: manifests
manifests: ## Generate the files of deploy/ from the configuration, the CLI and the chart
	$(GO) test ./hub/config -run TestTheDocumentation -update
	$(GO) test ./test/docs -run "TestTheReferenceOf(Metrics|Events)" -update
	$(GO) test ./cmd/plimsoll/internal/enroll -run TestTheFolder -update
	cd test/deploy && $(GO) test -run 'TestTheKustomizeBase|TestTheRights|TestWhatTheContainers|TestTheTableOfValues' . -update

DASHBOARDS := deploy/chart/plimsoll/files/dashboards

.PHONY: dashboards
dashboards: ## Write the Grafana dashboards of the chart from tools/dashboards
	cd tools/dashboards && $(GO) run . $(CURDIR)/$(DASHBOARDS)

.PHONY: testbed
testbed: ## Build the control planes that tests, demo and bench run on (4 to 20 minutes the first time)
	bash test/kube/controlplane/build.sh

# The image's name, and the architectures that `make image-files` builds for.
IMAGE       ?= plimsoll-hub:dev
IMAGE_ARCHS ?= amd64 arm64

.PHONY: image
image: ## Build the hub's image, IMAGE, with docker build, and the SBOMs of hub and CLI; needs no registry
	TAGS=$(TAGS) sh deploy/image/files.sh $$($(GO) env GOARCH)
	docker build --build-arg TARGETARCH=$$($(GO) env GOARCH) -t $(IMAGE) -f deploy/image/Dockerfile build/image

.PHONY: image-files
image-files: ## Build the files of the image with its SBOM for IMAGE_ARCHS, for docker buildx bake
	TAGS=$(TAGS) sh deploy/image/files.sh $(IMAGE_ARCHS)

.PHONY: chart
chart: ## Package the Helm chart into build/chart, for `helm push` to an OCI registry
	cd test/deploy && $(GO) tool helm package $(CURDIR)/deploy/chart/plimsoll --destination $(CURDIR)/build/chart

.PHONY: sbom
sbom: build ## Write the SBOMs of the hub and the CLI to build/bin/*.cdx.json (CycloneDX)
	cd tools/sbom && for binary in plimsoll-hub plimsoll; do \
		$(GO) run . $(CURDIR)/$(BIN)/$$binary $(CURDIR)/$(BIN)/$$binary.cdx.json || exit 1; done

.PHONY: flux
flux: ## Build Flux' controllers and sops, which the GitOps tests run (3 minutes the first time)
	bash test/gitops/flux/build.sh

.PHONY: karpenter
karpenter: ## Build Karpenter, which tests run in members (5 minutes the first time)
	bash test/kube/karpenter/build.sh

.PHONY: clean
clean: ## Remove build/, including tools and control planes
	rm -rf build

##
## Check
##

.PHONY: verify
verify: verify-generated verify-breaking verify-dashboards verify-format verify-modules vet lint ## Check that all generated and formatted code is current, and lint

.PHONY: verify-generated
verify-generated: $(BUF) $(PLUGINS) $(PROTOS)/.stamp $(KINDGEN) ## Check that the generated code of proto/ and the kinds is committed
	@rm -rf build/_verify
	$(BUF) generate -o build/_verify
	@sh tools/protos/compare.sh build/_verify/$(API) $(API)
	$(GO) test ./$(API) -run 'TestTheReference|TestTheOpenAPIDocument'
	@for kinds in $(KINDS); do sh tools/kinds.sh $(KINDGEN) "$(CRDS)" $$kinds build/_verify || exit 1; done

.PHONY: verify-dashboards
verify-dashboards: ## Check that the chart's dashboards are what tools/dashboards generates
	cd tools/dashboards && $(GO) run . -check $(CURDIR)/$(DASHBOARDS)

.PHONY: verify-format
verify-format: $(BUF) $(PROTOS)/.stamp ## Check the format of Go files (gofmt -s) and of proto/ (buf format)
	@bad=$$(find . -path ./build -prune -o -name '*.go' -exec gofmt -s -l {} +) || exit 1; \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -s -w on:"; echo "$$bad"; exit 1; fi
	$(BUF) format --diff --exit-code proto

.PHONY: verify-modules
verify-modules: ## Check that go.mod and go.sum match the imports
	$(GO) mod tidy -diff
	cd test/deploy && $(GO) mod tidy -diff
	cd tools/dashboards && $(GO) mod tidy -diff
	cd test/module && $(GO) mod tidy -diff
	cd tools/argocd && $(GO) mod tidy -diff

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

# Of the control planes only by linters that need no types: for those, all of Kubernetes would be compiled.
.PHONY: lint
lint: $(BUF) $(GOLANGCI) $(PROTOS)/.stamp ## Lint proto/ and the Go code
	$(BUF) lint
	$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/deploy && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd tools/dashboards && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/module && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd tools/argocd && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd tools/roots && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd tools/sbom && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/kube/controlplane && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners --enable-only depguard,ineffassign,misspell,nolintlint ./...

.PHONY: verify-breaking
verify-breaking: $(BUF) $(PROTOS)/.stamp ## Check that the API is compatible with the last one that landed, if the clone has it
	@base=$$(sh tools/protos/base.sh $(BASE)); if [ -n "$$base" ]; then $(MAKE) --no-print-directory breaking BASE=$$base; fi

.PHONY: breaking
breaking: $(BUF) $(PROTOS)/.stamp ## Check that the API is compatible with that of BASE (default: main)
	@rm -rf build/_base && mkdir -p build/_base/$(PROTOS) && cp -R $(PROTOS)/. build/_base/$(PROTOS)
	@for file in $$(git ls-tree -r --name-only $(BASE) buf.yaml proto); do \
		mkdir -p "build/_base/$$(dirname "$$file")" && git show "$(BASE):$$file" >"build/_base/$$file" || exit 1; \
	done
	$(BUF) breaking --against build/_base

##
## Test
##

.PHONY: test
ifdef PKG
test: ## Run the tests of PKG, or all tests: the unit tests, then those on real control planes
	$(RACE) "$(PKG)" -timeout 40m $(TESTFLAGS)
else
test: testbed
	$(MAKE) test-unit
	$(MAKE) test-integration
	$(MAKE) test-deploy
endif

# What a commit can break that is found in under two minutes, with Go's caches warm.
.PHONY: presubmit
presubmit: verify-format $(GOLANGCI) ## Check format, vet, lint and the unit tests of the packages that differ from BASE
	GO="$(GO)" BASE="$(BASE)" GOLANGCI="$(GOLANGCI)" TESTFLAGS="$(TESTFLAGS)" sh tools/presubmit.sh

.PHONY: cover
cover: ## Show what the unit tests of PKG cover, by function, and write build/cover.html
	@mkdir -p build
	$(GO) test -coverprofile build/cover.out $(TESTFLAGS) $(or $(PKG),$$($(GO) list ./... | grep -v /test/))
	$(GO) tool cover -func build/cover.out
	$(GO) tool cover -html build/cover.out -o build/cover.html

.PHONY: download
download: ## Download all Go modules, and try again where that fails
	@GO="$(GO)" sh tools/download.sh

# Tests are compiled and not linked: Go caches no linked tests.
.PHONY: compile
compile: testbed build flux karpenter e2e-images ## Compile what the tests need, without running any
	CGO_ENABLED=1 $(GO) list -race -test -deps -export ./... >/dev/null
	cd test/deploy && $(GO) list -test -deps -export ./... >/dev/null
	cd tools/argocd && $(GO) list -test -deps -export ./... >/dev/null

# A simulation in one goroutine, in which the race detector can find nothing. With it, these tests take five minutes.
SEQUENTIAL := reconcile/spot/sim

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane
	$(RACE) "$$($(GO) list ./... | grep -v -e /test/ -e '/$(SEQUENTIAL)$$')" -timeout 15m $(TESTFLAGS)
	$(GO) test -timeout 15m $(TESTFLAGS) ./$(SEQUENTIAL)
	cd tools/sbom && $(GO) test $(TESTFLAGS) ./...
	cd test/module && $(GO) test $(TESTFLAGS) ./...

# Two packages at a time: each starts its own clusters, and these wait more than they compute. Those of test/integration run
# side by side themselves (test/integration/main_test.go).
.PHONY: test-integration
test-integration: testbed build flux karpenter e2e-images chromium ## Run the tests on real control planes
	$(RACE) ./test/integration -timeout 40m $(TESTFLAGS)
	$(RACE) "$$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' \
		./test/... | grep -v /test/integration$$)" -timeout 40m -p 2 $(TESTFLAGS)

# Nothing here installs a browser. Without one the specs of the page are skipped, unless REQUIRE_CHROMIUM=1.
.PHONY: chromium
chromium:
	@command -v "$${PLIMSOLL_CHROMIUM:-chromium}" >/dev/null || { \
		echo "*** THE WEB PAGE IS NOT TESTED: there is no chromium. On Debian: apt-get install chromium; elsewhere set PLIMSOLL_CHROMIUM to its path."; \
		test "$$REQUIRE_CHROMIUM" != 1; }

.PHONY: test-page
test-page: chromium ## Test the hub's web page in headless Chromium, if installed; SCREENSHOTS=1 updates those in docs/images
	UPDATE_SCREENSHOTS=$(SCREENSHOTS) $(GO) test -timeout 15m $(TESTFLAGS) ./hub/page ./test/page

# A module of its own: Helm's, kustomize's and Prometheus' packages.
.PHONY: test-deploy
test-deploy: testbed build ## Test the chart, the kustomize bases, rights and alerts, and run a hub from them
	cd test/deploy && $(GO) test -timeout 15m $(TESTFLAGS) ./...
	cd tools/argocd && $(GO) test -timeout 15m $(TESTFLAGS) ./...

# The hub's image and control planes in containers: killed, paused and cut off. Without a Docker engine the specs are
# skipped, unless REQUIRE_DOCKER=1.
.PHONY: test-containers
test-containers: e2e-images ## Test hub and members in containers, if a Docker engine is available
	$(GO) test -timeout 20m $(TESTFLAGS) ./test/e2e

# The next image is another build of the same hub, to roll to; the first one is built last and stays in build/image.
.PHONY: e2e-images
e2e-images: testbed
	@if docker info >/dev/null 2>&1; then \
		$(MAKE) image IMAGE=plimsoll-hub:next TAGS=$(TAGS),next && $(MAKE) image && sh test/e2e/images.sh; \
	else echo "no Docker engine answers"; fi

.PHONY: fuzz-short
fuzz-short: ## Run every fuzz target for FUZZTIME (default: 10s)
	GO="$(GO)" sh tools/fuzz.sh $(or $(FUZZTIME),10s)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default: 1m), and save inputs that reach new code in testdata/fuzz
	GO="$(GO)" KEEP=1 sh tools/fuzz.sh $(or $(FUZZTIME),1m)

.PHONY: vulncheck
vulncheck: $(VULN) ## Check for known vulnerabilities in called code, or report that the database is not available
	sh tools/vulncheck/run.sh $(VULN) ./...

##
## See it run
##

.PHONY: demo
demo: build testbed $(GRPCURL) ## Start a hub and three clusters, and show how replicas move, until Ctrl-C
	$(GO) build -o $(BIN)/demo ./test/demo
	$(BIN)/demo

.PHONY: demo-check
demo-check: build testbed $(GRPCURL) ## Run the demo unattended, check its results, and exit
	$(GO) build -o $(BIN)/demo ./test/demo
	$(BIN)/demo -check

.PHONY: run
run: build ## Run a hub for the cluster of the current kubeconfig, on loopback and without tokens, until Ctrl-C
	KUBECONFIG="$${KUBECONFIG:-$$HOME/.kube/config}" $(BIN)/plimsoll-hub --config tools/run.yaml

.PHONY: bench
bench: build testbed flux karpenter e2e-images ## Run all benchmarks, and write build/bench.json
	$(GO) build -o $(BIN)/bench ./test/bench
	$(BIN)/bench

# Folders of recorded spot capacity, by commas; below each, every folder of *.json is one trace.
TRACES ?= ../shared/traces

.PHONY: replay
replay: ## Replay recorded spot capacity in TRACES with fleet.Plan and other policies, and write build/replay.json
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/replay ./test/replay
	$(BIN)/replay -traces "$(TRACES)" $(REPLAYFLAGS)

.PHONY: traces
traces: ## Generate a synthetic trace from SEED in build/traces, to replay with TRACES=build/traces
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/replay ./test/replay
	$(BIN)/replay -generate build/traces/synthetic-$(SEED) -seed $(SEED)

# How long faults are done, and with which seed; 0: any.
DURATION ?= 10m
SEED     ?= 0

.PHONY: robustness
robustness: build testbed ## Inject faults into a hub of several replicas for DURATION with SEED, check the history, add the result to build/bench.json
	GO=$(GO) TAGS=$(TAGS) bash test/robustness/skewed/build.sh
	$(GO) build -o $(BIN)/robustness ./test/robustness
	$(BIN)/robustness -seed $(SEED) -duration $(DURATION)

##
## Pinned tools: tools/ holds those that resolve together, tools/lint and tools/vulncheck those that do not.
##

tool-package = $(shell awk '/^tool \(/ { inside = 1; next } /^\)/ { inside = 0 } inside && $$1 ~ /\/$(1)$$/ { print $$1 }' $(2)/go.mod)

.PHONY: tools
tools: $(BUF) $(PLUGINS) $(GRPCURL) $(KINDGEN) $(GOLANGCI) $(VULN) ## Build every pinned tool into build/tools

$(BUF) $(PLUGINS) $(GRPCURL) $(KINDGEN): $(TOOLS)/%: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && $(GO) build -o ../$@ $(call tool-package,$*,tools)
	@touch $@

$(GOLANGCI): tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(TOOLS)
	cd tools/lint && $(GO) build -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(VULN): tools/vulncheck/go.mod tools/vulncheck/go.sum
	@mkdir -p $(TOOLS)
	cd tools/vulncheck && $(GO) build -o ../../$@ golang.org/x/vuln/cmd/govulncheck
	@touch $@

$(PROTOS)/.stamp: tools/protos/go.mod tools/protos/go.sum tools/protos/copy.sh
	sh tools/protos/copy.sh $(PROTOS)
	@touch $@
