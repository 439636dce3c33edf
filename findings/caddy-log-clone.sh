#!/usr/bin/env bash
# Caddy 2.11.9 writes its access log from a copy of the request, made before the first handler. A handler that takes a
# secret out of the URL or out of a header, for what comes behind it, changes nothing in the log: the line shows the URL
# and the header as they came. What hides them is a filter of the log's encoder.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill "$caddy" 2> /dev/null || true; rm -rf "$dir"' EXIT
caddy=
cd "$dir"
GOBIN=$dir go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
export XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir

port=$(node -e 's=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
cat > Caddyfile <<CADDY
{
	admin off
	auto_https off
}
http://127.0.0.1:$port {
	log {
		output file access.log
	}
	route {
		uri query token hidden
		request_header X-Key hidden
		respond "{http.request.uri.query} {http.request.header.X-Key}"
	}
}
CADDY
./caddy run --config Caddyfile 2> log &
caddy=$!
behind=$(curl -s --retry 50 --retry-connrefused --retry-delay 1 -H 'X-Key: secret' "http://127.0.0.1:$port/?token=secret")
for _ in $(seq 50); do [ -s access.log ] && break; sleep 0.1; done

diff - <(echo "behind: $behind"
  node -p 'r=JSON.parse(require("fs").readFileSync("access.log")).request;`log: ${r.uri} ${r.headers["X-Key"]}`') <<'SEEN'
behind: token=hidden hidden
log: /?token=secret secret
SEEN
echo "as described"
