# haptic: make demo, make test, make e2e

GO ?= go
# A test that hangs says where, long before CI would end it.
TEST_TIMEOUT ?= 15m

# Debian keeps haproxy where the PATH of an ordinary user does not look.
export PATH := $(PATH):/usr/sbin:/sbin

# How long make soak makes trouble.
SOAK ?= 10m

# How long each attack of make hostile goes on.
HOSTILE ?= 30s

# How long each mistake of make mistakes stands.
MISTAKES ?= 10s

# The name of the image, and what builds it: docker or podman.
IMAGE ?= haptic:latest
DOCKER ?= docker

.PHONY: demo image test race e2e soak hostile mistakes figures bench haproxy

demo: haproxy ## run the reference controller on a folder of manifests, until Ctrl-C
	@$(GO) build -o bin/controller ./examples/controller
	@exec bin/controller -demo -manifests examples/controller/demo

image: ## the reference controller beside HAProxy 3.2, as IMAGE=haptic:latest
	$(DOCKER) build -f examples/controller/deploy/Dockerfile -t $(IMAGE) .

# Most of a first build is other modules. Nobody debugs those, and what they inline costs more to
# find than it saves. Commands of go that tests run have these flags as well, so that nothing
# is built twice.
QUICK = $(shell $(GO) env GOFLAGS) '-gcflags=all=-l -dwarf=false'
RACE = $(shell $(GO) env GOFLAGS) -race -gcflags=all=-dwarf=false '-gcflags=k8s.io/...=-l -dwarf=false'

# Packages of plain functions: the race detector makes their tests slow, and has nothing to find.
# It watches those of their tests that have "Concurrent" in their names, in CONCURRENT.
PLAIN = ./templating/... ./internal/haproxycfg ./internal/jsonpath ./k8swatch/derive \
	./dataplane/internal/change ./dataplane/internal/config ./dataplane/internal/diff \
	./reconcile/claims ./examples/controller/annotation ./examples/controller/ingress
CONCURRENT = ./templating ./internal/jsonpath

test: haproxy ## all tests of the SDK, with the race detector where goroutines meet, and each benchmark once
	GOOS=darwin GOFLAGS="$(QUICK)" $(GO) build ./dataplane
	GOFLAGS="$(QUICK)" $(GO) test -vet=all -timeout $(TEST_TIMEOUT) $(PLAIN)
	export GOFLAGS="$(RACE)"; \
	$(GO) test -vet=off -run Concurrent $(CONCURRENT) && \
	$(GO) test -vet=all -timeout $(TEST_TIMEOUT) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN))") && \
	(cd examples/traced && $(GO) test -vet=all ./...) && \
	(cd internal/e2e && $(GO) vet ./...)

race: haproxy ## all tests of the SDK with the race detector
	GOFLAGS="$(RACE)" $(GO) test -vet=off -timeout 1h ./...

e2e: haproxy ## the controller against a real API server and a real haproxy
	@internal/tools/install-packages ip:iproute2
	cd internal/e2e && GOFLAGS="$(QUICK)" $(GO) test -vet=off -count=1 -timeout 30m ./...

soak: haproxy ## random faults under constant traffic, for SOAK=10m, and random fleets, settings, values, stores and configurations
	$(GO) test -count=1 -timeout 2h -run '^(TestRandomFleets|TestHostileMillions|TestHostileAnnotations)$$' ./examples/controller/ingress -seeds 1000 -hostile 14000
	$(GO) test -count=1 -timeout 1h -run '^TestRandomSettings$$' ./reconcile/settings -seeds 500
	$(GO) test -count=1 -timeout 1h -run '^TestStoreModel$$' ./k8swatch -seeds 100
	$(GO) test -count=1 -timeout 1h -run '^TestInheritsAtRandom$$' ./validate -inherit.for 2m
	@internal/tools/install-packages ip:iproute2
	cd internal/e2e && $(GO) test -count=1 -v -run '^TestSoak$$' -soak $(SOAK) -soakrace -timeout 24h .

hostile: haproxy ## what a hostile tenant can delay of another's changes, attack by attack, each for HOSTILE=30s
	$(GO) test -count=1 -v -run '^(TestHostileTenantStallsNobody|TestEndpointsBesideWhatHangs)$$' ./examples/controller -hostile
	$(GO) test -count=1 -v -run '^TestNoneIsSlow$$' ./templating/regex -slow $(HOSTILE)
	$(GO) test -count=1 -v -run '^TestFullSums$$' ./examples/controller/ingress -sums
	@internal/tools/install-packages ip:iproute2
	cd internal/e2e && $(GO) test -count=1 -v -run '^TestHostile$$' -hostile $(HOSTILE) -timeout 24h .

mistakes: haproxy ## what is said of the mistakes of operators and tenants, and what they cost, each for MISTAKES=10s
	@internal/tools/install-packages ip:iproute2
	cd internal/e2e && $(GO) test -count=1 -v -run '^TestMistakes$$' -mistakes $(MISTAKES) -timeout 24h .

figures: haproxy ## what a change costs with 100 to 10,000 Ingresses, how long a start takes, and memory; 25 minutes
	@internal/tools/install-packages ip:iproute2
	cd internal/e2e && $(GO) test -count=1 -v -run '^TestFigures$$' -timeout 24h -figures .

bench: haproxy ## figures: see the doc comment of each benchmark
	$(GO) test -run '^$$' -bench . -benchmem ./...

haproxy: ## install haproxy where it is missing
	@internal/tools/install-packages haproxy:haproxy
