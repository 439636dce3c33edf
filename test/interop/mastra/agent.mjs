// SPDX-License-Identifier: Apache-2.0

// An agent of Mastra, served by its server on Hono as an agent of A2A v0.3, with a model by rule.

import { getRequestListener } from '@hono/node-server';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { MastraServer } from '@mastra/hono';
import { Memory } from '@mastra/memory';
import { InMemoryTaskStore } from '@mastra/server/a2a/store';
import { Hono } from 'hono';

import { agent } from '../internal/js/serve.mjs';
import { aiModel } from '../model/model.mjs';

const one = new Agent({
  id: 'mastra',
  name: 'mastra',
  description: 'answers by rule',
  instructions: 'Answer by rule.',
  model: aiModel('v2'),
  memory: new Memory(),
});
const mastra = new Mastra({ agents: { mastra: one }, storage: new InMemoryStore(), logger: false });
const app = new Hono();
await new MastraServer({ app, mastra, taskStore: new InMemoryTaskStore() }).init();

await agent(() => getRequestListener(app.fetch));
