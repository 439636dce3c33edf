#!/usr/bin/env bash
# An event that has an id and no data moves the cursor in some clients of SSE and not in others. The HTML standard sets the
# last event ID before it looks whether there is data, and so does the EventSource of undici 7.30.2: it reconnects with
# that id. eventsource 4.1.1 from npm drops the whole event: it reconnects with the id of the last event that had data.
# A server cannot move a reader past what the reader need not see by such an event.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund eventsource@4.1.1 undici@7.30.2

cat > seen.mjs <<'JS'
import http from 'node:http';
import { EventSource as FromNpm } from 'eventsource';
import { EventSource as FromUndici } from 'undici';

for (const [name, EventSource] of [['eventsource', FromNpm], ['undici', FromUndici]]) {
  await new Promise(done => {
    let first = true, source;
    const server = http.createServer((q, r) => {
      if (!first) {
        console.log(`${name}: reconnects with ${q.headers['last-event-id']}`);
        source.close();
        r.end();
        server.close(done);
        server.closeAllConnections();
        return;
      }
      first = false;
      r.setHeader('content-type', 'text/event-stream');
      r.end('retry: 10\nid: 1\ndata: one\n\nid: 2\n\n');
    });
    server.listen(0, '127.0.0.1', () => { source = new EventSource(`http://127.0.0.1:${server.address().port}/`); });
  });
}
JS

diff - <(node --no-warnings seen.mjs) <<'SEEN'
eventsource: reconnects with 1
undici: reconnects with 2
SEEN
echo "as described"
