#!/usr/bin/env bash
# Caddy 2.11.9: `encode` holds the header of a streamed answer until the answer's first byte, though reverse_proxy has
# flushed it (`flush_interval -1`) and nothing is encoded yet. Only text/event-stream passes at once. The client of a
# stream in application/x-ndjson does not learn that the stream was accepted before the agent says its first word.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill "$caddy" "$agent" 2> /dev/null || true; rm -rf "$dir"' EXIT
caddy= agent=
cd "$dir"
GOBIN=$dir go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
export XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir

# The agent sends its first byte when the client says that it has the header, or three seconds later.
cat > agent.mjs <<'JS'
import http from 'node:http';
import fs from 'node:fs';
let told;
http.createServer((q, r) => {
  if (q.url === '/header') { told('at once'); return r.end(); }
  r.setHeader('content-type', q.url.slice(1));
  r.flushHeaders();
  const when = new Promise(done => { told = done; setTimeout(done, 3000, 'with the first byte'); });
  when.then(seen => r.end(`${seen}\n`));
}).listen(0, '127.0.0.1', function () { fs.writeFileSync('port', `${this.address().port}`); });
JS
node agent.mjs & agent=$!
for _ in $(seq 50); do [ -s port ] && break; sleep 0.1; done

port=$(node -e 's=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
cat > Caddyfile <<CADDY
{
	admin off
	auto_https off
}
http://127.0.0.1:$port {
	encode gzip
	reverse_proxy 127.0.0.1:$(cat port) {
		flush_interval -1
	}
}
CADDY
./caddy run --config Caddyfile 2> log & caddy=$!
curl -s -o /dev/null --retry 50 --retry-connrefused --retry-delay 1 "http://127.0.0.1:$port/warm"

cat > client.mjs <<'JS'
const [url, agent] = process.argv.slice(2);
for (const type of ['text/event-stream', 'application/x-ndjson']) {
  const answer = await fetch(`${url}/${type}`);
  await fetch(`${agent}/header`);
  console.log(`${type}: ${(await answer.text()).trim()}`);
}
JS
diff - <(node client.mjs "http://127.0.0.1:$port" "http://127.0.0.1:$(cat port)") <<'SEEN'
text/event-stream: at once
application/x-ndjson: with the first byte
SEEN
echo "as described"
