# make help lists the targets.

GO      ?= go
FUZZ    ?= 20s
SOURCES := $(shell git ls-files --cached --others --exclude-standard '*.go' 'caddymodule/console/assets' 2>/dev/null) go.mod go.sum

# The modules with code of ours, each with a go.mod. Interop and contrib/check have their own targets.
MODULES := . test/bench test/soak contrib/release conform

empty :=
space := $(empty) $(empty)

.PHONY: help run check test formatted lint unit pairs sparse groups model interop conform rabbitmq nats contrib chromium axe manifests e2e wild fuzz bench soak chaos release module clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: caddy .pki/ca.pem ## build, make development certificates, and run Caddyfile.example
	@(for i in $$(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/8443) 2>/dev/null && break; sleep 0.1; done; \
	  printf '\nThe gateway is up. In another terminal, in this folder, type:\n\n  ./caddy aip call https://localhost:8443 start "hello"\n\n') & \
	exec ./caddy run --config Caddyfile.example

run: SHELL := /bin/bash

caddy: $(SOURCES) xcaddy.sh
	./xcaddy.sh $@

# What the command prints is for a Caddyfile of one's own; Caddyfile.example names these certificates already.
.pki/ca.pem: | caddy
	./caddy aip pki --dir .pki > /dev/null

# What has changed: against BASE, and what git does not know yet.
BASE    ?= HEAD
CHANGED  = $(sort $(dir $(shell git diff --name-only --diff-filter=d $(BASE) -- '*.go'; git ls-files --others --exclude-standard '*.go')))
WITHIN   = $(addprefix ./,$(filter-out $(addsuffix /%,test contrib conform front/group internal/natstest),$(CHANGED)))

check: formatted ## formatting, vet, layout, words, and the tests of what differs from BASE, without the race detector, in a minute
	$(GO) vet $(WITHIN) .
	$(GO) test -tags sparse -vet=off . ./docs $(WITHIN)

test: lint unit pairs e2e groups chaos ## everything that must pass: lint, unit tests with the race detector, end-to-end tests

pairs: # parts that keep one core busy each
	@$(MAKE) -j2 --output-sync=target sparse model interop manifests

formatted: # every file is as gofmt writes it
	@files=$$(gofmt -l $(filter %.go,$(SOURCES))) && test -z "$$files" || \
	  { echo "not formatted:" $$files; exit 1; }

lint: formatted ## gofmt, vet, staticcheck, and a tidy go.mod, of each module
	@set -e; staticcheck=$$($(GO) tool -n staticcheck); for module in $(MODULES); do ( set -ex; cd $$module; \
	  $(GO) vet ./...; $$staticcheck ./...; $(GO) mod tidy -diff ); done

# The packages that take longest begin first, so that no core waits for them in the end, and there are three at a time,
# since one of them waits. Those whose tests try less with the race detector, since it would take ten times as long, are
# run once more without it.
LONGEST := replay/pebble notify replay/jetstream front/httpfront
SPARSE  := ./replay/pebble

unit: nats ## unit tests, with the race detector; those of groups and the models are apart
	$(GO) test -p 3 -parallel 4 -race -vet=off -shuffle=on -count=1 -timeout=20m $(addprefix ./,$(LONGEST)) \
	  $$($(GO) list ./... | grep -vE '/(test/e2e/[a-z]+|front/group|front/group/broker|test/model|$(subst $(space),|,$(LONGEST)))$$')
	@set -e; for module in $(filter-out .,$(MODULES)); do ( set -x; cd $$module; \
	  $(GO) test -race -vet=off -shuffle=on -count=1 ./... ); done

sparse: ## unit tests that try less with the race detector, without it
	$(GO) test -vet=off -shuffle=on -count=1 $(SPARSE)
	$(GO) test -vet=off -count=1 -run 'Budget$$' ./caddymodule

groups: rabbitmq ## the unit tests of groups, which need a RabbitMQ
	$(GO) test -race -shuffle=on -count=1 ./front/group/...

model: ## the models of several gateways over one store, checked by spin
	$(GO) test -count=1 ./test/model

INTEROP := $(addprefix test/interop/bin/,legacy-trpc legacy-trpc-client a2a-go-03 a2a-go-10) \
	$(addsuffix /node_modules/.package-lock.json,test/interop/js-03 test/interop/js-10)

# Agents that people run, with a model by rule. Those in Go have a module each, so that nothing else moves with them.
# Those by npm are large: only make wild installs and asks them.
WILD     := adk-go trpc-00 trpc-02 a2a-go-23
WILD_NPM := $(patsubst %,test/interop/%/node_modules/.package-lock.json,adk-js mastra voltagent gemini-cli)

$(addprefix test/interop/bin/,$(WILD)): test/interop/bin/%: test/interop/%/main.go test/interop/%/go.mod test/interop/model/model.go
	cd test/interop/$* && $(GO) build -o ../bin/$* .

# A tool in a module of its own, since it needs much.
test/interop/bin/opa: test/interop/opa/go.mod test/interop/opa/go.sum
	cd test/interop/opa && $(GO) build -o ../bin/opa github.com/open-policy-agent/opa

interop: $(INTEROP) ## the other projects' agents and clients, among themselves
	cd test/interop && $(GO) vet ./... && $(GO) test -count=1 ./...
	@set -e; for module in model $(WILD); do ( set -x; cd test/interop/$$module; $(GO) vet ./... ); done

manifests: ## container files, Kubernetes manifests, the Helm chart, and a release for this platform, against their schemas
	cd contrib/check && $(GO) vet ./... && $(GO) test -count=1 ./...

# Packages of end-to-end tests, a subject each: make e2e ONLY="groups aun" runs two of them. Two packages run at a time,
# with ports, brokers and certificates of their own.
E2E      = $(addprefix ./test/e2e/,$(or $(ONLY),...))
PARALLEL = -p 2 -parallel $(if $(filter 1,$(words $(ONLY))),4,2)

e2e: caddy rabbitmq nats contrib chromium axe conform/bin/aipconform $(INTEROP) $(addprefix test/interop/bin/,$(WILD)) test/interop/bin/opa ## end-to-end tests: the real binary, real TLS, real agents; ONLY=groups: of one subject
	$(GO) test $(PARALLEL) -vet=off -shuffle=on -count=1 -timeout=30m -skip '^(TestWildAgentsByNpm|TestConformOf.*|TestA2A)$$' $(E2E)
	@set -e; for loop in $(if $(LOOPS),on off); do ( set -x; \
	  AIP_E2E_LOOP=$$loop $(GO) test $(PARALLEL) -vet=off -count=1 -run '$(CONNECTIONS)' $(LOOPS) ); done

# What connections may change, over HTTP/1.1, with and without loops: answers that are not read, identity, limits,
# drain, reload and stop. Most other tests call over HTTP/2, and some of them need it.
CONNECTIONS := ^Test(AnswersThatAreNotRead|DrainMode|Identify|Identity|LeadersAreIsolated|OpenStreams|Policy|Proofs|ReloadKeepsRunsOfARemovedRoute|StopAnswersWaitingCalls|StreamsOutliveTheirRequests|UnauthenticatedConnections|AgentAPICallers)$$
LOOPS        = $(addprefix ./test/e2e/,$(filter $(or $(ONLY),%),dialects identity operations streams))

conform: caddy nats conform/bin/aipconform $(filter test/interop/bin/%,$(INTEROP)) ## aipconform at the gateway in front of agents of each dialect; CORPUS=A2A/tests/acts: A2A's own tests, too
	$(GO) test -vet=off -count=1 -v -run '^$(if $(CORPUS),(TestConform|TestA2A),TestConform)' ./test/e2e/conform \
	  $(if $(CORPUS),-args -corpus '$(abspath $(CORPUS))')

conform/bin/aipconform: $(shell git ls-files conform ':!*_test.go' ':!*.md')
	cd conform && $(GO) build -o bin/aipconform ./aipconform

wild: caddy rabbitmq $(addprefix test/interop/bin/,$(WILD)) $(WILD_NPM) ## Leaders and agents as people run them: with the gateway and without
	$(GO) test -vet=off -count=1 -run '^TestWild' ./test/e2e/wild ./test/e2e/dialects

rabbitmq: ## RabbitMQ for the tests of groups, unpacked from Debian's packages into ~/.cache
	@./internal/rabbittest/install.sh

unit: rabbitmq # its packages have the Python that runs a receiver of webhooks

NATS := internal/natstest

nats: $(NATS)/server/bin/nats-server $(NATS)/cli/bin/nats ## NATS servers and their tool, for tests of several gateways

$(NATS)/server/bin/nats-server: $(NATS)/server/go.mod
	cd $(NATS)/server && $(GO) build -o bin/nats-server github.com/nats-io/nats-server/v2

$(NATS)/cli/bin/nats: $(NATS)/cli/go.mod
	cd $(NATS)/cli && $(GO) build -o bin/nats github.com/nats-io/natscli/nats

contrib: ## HAProxy, nginx, Prometheus and systemd's tools for the tests of contrib/, unpacked in the same way
	@./contrib/install.sh

chromium: ## a Chromium without a window for the tests of the console, unpacked in the same way
	@./internal/browser/install.sh

axe: internal/browser/axe/node_modules/.package-lock.json ## axe-core, by which the tests check that the console is accessible

test/interop/bin/%: $(wildcard test/interop/*/*.go test/interop/internal/*/*.go) test/interop/go.mod
	cd test/interop && $(GO) build -o bin/$* ./$*

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund

fuzz: ## every fuzz target, for FUZZ (20s) each
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ) $$p; done; done

bench: caddy rabbitmq ## the measured comparison with other proxies
	cd test/bench && $(GO) run .

soak: caddy rabbitmq nats ## the real binary under load, faults and attacks, for 12 minutes; SOAK="-cluster -for 1h": several
	cd test/soak && $(GO) run . $(SOAK)

chaos: caddy rabbitmq nats ## three gateways and their NATS servers under disturbances, for 2.5 minutes; make soak has a longer form
	cd test/soak && $(GO) run . -cluster -for 2m -takeover 0

release: ## archives, bills of materials and checksums of the commit, in dist/
	cd contrib/release && $(GO) run .

module: ## rename the module: make module MODULE=example.com/gateway
	@test -n "$(MODULE)"
	old=$$($(GO) list -m) && git grep -lF "$$old" | xargs sed -i "s|$$old|$(MODULE)|g"

clean: ## remove what was built; certificates and tasks stay
	rm -rf caddy conform/bin test/interop/bin $(NATS)/bin
