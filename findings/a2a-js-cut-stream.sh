#!/usr/bin/env bash
# @a2a-js/sdk 0.3.14: where the connection of message/stream ends while the task is working, the client's iteration ends
# without an error, and the client asks neither tasks/resubscribe nor tasks/get. A caller cannot tell a cut stream from a
# finished one but by the state in the last event.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @a2a-js/sdk@0.3.14

cat > seen.mjs <<'JS'
import http from 'node:http';
import { ClientFactory } from '@a2a-js/sdk/client';

const asked = [];
const server = http.createServer(async (q, r) => {
  if (q.method === 'GET') {
    const card = { protocolVersion: '0.3.0', name: 'agent', description: 'agent', version: '1', url: base,
      preferredTransport: 'JSONRPC', capabilities: { streaming: true }, defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'], skills: [] };
    r.setHeader('content-type', 'application/json');
    return r.end(JSON.stringify(card));
  }
  let body = '';
  for await (const piece of q) body += piece;
  const call = JSON.parse(body);
  asked.push(call.method);
  const result = { kind: 'task', id: 't', contextId: 'c', status: { state: 'working' } };
  r.setHeader('content-type', 'text/event-stream');
  r.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: call.id, result })}\n\n`);
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const base = `http://127.0.0.1:${server.address().port}/`;

const client = await new ClientFactory().createFromUrl(base);
const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
try {
  for await (const e of client.sendMessageStream({ message })) console.log(`${e.kind}: ${e.status.state}`);
  console.log('ended without an error');
} catch (e) {
  console.log(`ended with ${e}`);
}
console.log(`asked: ${asked.join(', ')}`);
server.close();
JS

diff - <(node seen.mjs) <<'SEEN'
task: working
ended without an error
asked: message/stream
SEEN
echo "as described"
