#!/usr/bin/env bash
# @mastra/hono 1.7.9 with @mastra/core 1.71.0, an agent of A2A 0.3: a JSON-RPC method that it does not know is answered
# with HTTP 400 and {"error": "Invalid request body", "issues": ...}, without jsonrpc, id and code; so a client that looks
# for -32601 ("Method not found") to learn what an agent speaks finds no JSON-RPC there. The card is not at the
# well-known place of the host, but at /api/.well-known/<id>/agent-card.json.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts @mastra/core@1.71.0 @mastra/hono@1.7.9 @mastra/server@1.67.0 \
  @hono/node-server@2.1.9 hono@4.13.7 zod@4.2.1

cat > seen.mjs <<'JS'
import { serve } from '@hono/node-server';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { MastraServer } from '@mastra/hono';
import { InMemoryTaskStore } from '@mastra/server/a2a/store';
import { Hono } from 'hono';

const model = { specificationVersion: 'v2', provider: 'rule', modelId: 'rule', supportedUrls: {} }; // it is not asked
const one = new Agent({ id: 'one', name: 'one', instructions: 'Answer.', model });
const app = new Hono();
await new MastraServer({ app, mastra: new Mastra({ agents: { one }, logger: false }), taskStore: new InMemoryTaskStore() }).init();
const port = await new Promise((done) => serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (info) => done(info.port)));
const base = `http://127.0.0.1:${port}`;

const ask = (method) => fetch(`${base}/api/a2a/one`, {
  method: 'POST', headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id: 'none' } }),
});
const known = await ask('tasks/get');
console.log('SEEN tasks/get of no task:', known.status, (await known.json()).error.code);
const unknown = await ask('GetNothing');
console.log('SEEN an unknown method:', unknown.status, Object.keys(await unknown.json()).join(', '));
for (const path of ['/.well-known/agent-card.json', '/.well-known/one/agent-card.json', '/api/.well-known/one/agent-card.json']) {
  console.log(`SEEN ${path}:`, (await fetch(base + path)).status);
}
process.exit();
JS

diff - <(node seen.mjs 2> errors | grep -a SEEN) <<'SEEN'
SEEN tasks/get of no task: 200 -32001
SEEN an unknown method: 400 error, issues
SEEN /.well-known/agent-card.json: 404
SEEN /.well-known/one/agent-card.json: 404
SEEN /api/.well-known/one/agent-card.json: 200
SEEN
echo "as described"
