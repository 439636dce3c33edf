#!/usr/bin/env bash
# Caddy 2.11.9: an admin API that listens at another loopback address than 127.0.0.1 accepts requests for localhost,
# 127.0.0.1 and ::1 only. A request for the address at which it listens, as `caddy reload --address` sends it, is refused
# with 403, until `origins` names that address.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill "$caddy" 2> /dev/null || true; rm -rf "$dir"' EXIT
caddy=
cd "$dir"
GOBIN=$dir go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
export XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir

port=$(node -e 's=require("net").createServer().listen(0,"127.0.0.2",()=>{console.log(s.address().port);s.close()})')
echo "{\"admin\":{\"listen\":\"127.0.0.2:$port\"}}" > config.json
./caddy run --config config.json 2> log &
caddy=$!
curl -s -o /dev/null --retry 50 --retry-connrefused --retry-delay 1 "http://127.0.0.2:$port/config/"

ask() { curl -s -o /dev/null -w "$1: %{http_code}\n" -H "Host: $1:$port" "http://127.0.0.2:$port/config/"; }
diff - <(ask 127.0.0.2; ask 127.0.0.1; ask localhost) <<'SEEN'
127.0.0.2: 403
127.0.0.1: 200
localhost: 200
SEEN
echo "as described"
