#!/usr/bin/env bash
# @google/adk 2.0.0 (ADK for JS), an agent made by toA2a: tasks that run at the same time share one artifactId. The first
# that ends takes the id away, and the other one's whole answer comes under a new id, beside its own pieces under the old
# one. So an artifactId belongs to one task alone, and an agent's answer may stand in its task twice.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts @google/adk@2.0.0 express@5.3.0

cat > seen.mjs <<'JS'
import { createServer } from 'node:http';
import { BaseLlm, LlmAgent, toA2a } from '@google/adk';

const waiting = new Map(); // the models that have said their first piece, by what they were asked
class Model extends BaseLlm {
  async *generateContentAsync({ contents }) {
    const asked = contents.at(-1).parts[0].text;
    const content = (text) => ({ role: 'model', parts: [{ text }] });
    yield { content: content('half '), partial: true };
    await new Promise((done) => waiting.set(asked, done));
    yield { content: content('half and half'), turnComplete: true };
  }
}

const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const { port } = server.address();
const agent = new LlmAgent({ name: 'a', description: 'a', model: new Model({ model: 'rule' }) });
server.on('request', await toA2a(agent, { host: '127.0.0.1', port, allowUnauthenticated: true }));

async function ask(text) {
  const message = { kind: 'message', messageId: text, role: 'user', parts: [{ kind: 'text', text }] };
  const answer = await fetch(`http://127.0.0.1:${port}/jsonrpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } }),
  });
  const artifacts = new Map();
  for (const line of (await answer.text()).split('\n')) {
    const event = line.startsWith('data: ') && JSON.parse(line.slice(6)).result;
    if (event?.kind !== 'artifact-update') continue;
    const before = event.append ? artifacts.get(event.artifact.artifactId) ?? '' : '';
    artifacts.set(event.artifact.artifactId, before + event.artifact.parts.map((part) => part.text).join(''));
  }
  return artifacts;
}
const said = async (text) => {
  while (!waiting.has(text)) await new Promise((done) => setTimeout(done, 10));
};

const one = ask('one');
await said('one');
const two = ask('two');
await said('two');
waiting.get('one')();
const first = await one;
waiting.get('two')();
const second = await two;
console.log('SEEN one:', [...first.values()].join(' | '));
console.log('SEEN two:', [...second.values()].join(' | '));
console.log('SEEN the same id in both:', [...second.keys()].some((id) => first.has(id)));
process.exit();
JS

diff - <(node seen.mjs 2> errors | grep -a SEEN) <<'SEEN'
SEEN one: half and half
SEEN two: half  | half and half
SEEN the same id in both: true
SEEN
echo "as described"
