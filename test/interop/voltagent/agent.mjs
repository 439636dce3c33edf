// SPDX-License-Identifier: Apache-2.0

// An agent of VoltAgent, served by its server on Hono as an agent of A2A, with a model by rule.

import { createServer } from 'node:net';

import { aiModel } from '../model/model.mjs';

process.env.NODE_ENV = 'production'; // or else it asks the network for models
const { A2AServer } = await import('@voltagent/a2a-server');
const { Agent, VoltAgent } = await import('@voltagent/core');
const { honoServer } = await import('@voltagent/server-hono');

// The server listens by itself, and takes no port 0.
const free = createServer();
await new Promise((done) => free.listen(0, '127.0.0.1', done));
const { port } = free.address();
await new Promise((done) => free.close(done));

const one = new Agent({ id: 'volt', name: 'volt', purpose: 'answers by rule', instructions: 'Answer by rule.', model: aiModel('v3') });
const volt = new VoltAgent({
  agents: { volt: one },
  a2aServers: { volt: new A2AServer({ id: 'volt', name: 'volt', version: '1', agents: { volt: one } }) },
  server: honoServer({ port, hostname: '127.0.0.1', enableSwaggerUI: false }),
});
await volt.ready;
console.log(`listening on 127.0.0.1:${port}`);
