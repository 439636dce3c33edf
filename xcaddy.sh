#!/usr/bin/env bash
# Builds ./caddy with this module in it. xcaddy and Caddy are pinned in go.mod, so nothing is installed by hand.
set -euo pipefail
cd "$(dirname "$0")"

module=$(go list -m)
caddy=$(go list -m -f '{{.Version}}' github.com/caddyserver/caddy/v2)

# These are xcaddy's own flags without -trimpath: so what go test and go vet have compiled is not compiled again.
export XCADDY_GO_BUILD_FLAGS="${XCADDY_GO_BUILD_FLAGS:--ldflags '-w -s' -tags nobadger,nomysql,nopgx}"

# The version is made up: without one, a module proxy is asked about a module that may not be published.
exec go tool xcaddy build "$caddy" --with "$module@v0.0.0=$PWD" --output "${1:-./caddy}"
