// SPDX-License-Identifier: Apache-2.0

// An agent that speaks A2A v0.3, over JSON-RPC at /invoke and REST under /rest, with @a2a-js/sdk 0.3.14.

import { randomUUID } from 'node:crypto';

import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

import { Turns } from '../internal/js/script.mjs';
import { agent } from '../internal/js/serve.mjs';

// Stage is a task at this SDK; it lives as long as a turn.
class Stage {
  constructor(request, bus) {
    this.request = request;
    this.bus = bus;
    this.artifactId = '';
  }

  begin() {
    const { taskId: id, contextId, userMessage, task } = this.request;
    if (!task) this.bus.publish({ kind: 'task', id, contextId, status: { state: 'submitted', timestamp: now() }, history: [userMessage] });
    this.status('working');
  }

  status(state, text) {
    const message = text && this.said(text);
    this.tell('status-update', { status: { state, ...(message && { message }), timestamp: now() }, final: state !== 'working' });
  }

  artifact({ name, text, data, file, first, last }) {
    let part = { kind: 'text', text };
    if (file) part = { kind: 'file', file: { name: file.name, mimeType: file.mediaType, bytes: file.base64 } };
    else if (data) part = { kind: 'data', data };
    if (first) this.artifactId = randomUUID();
    this.tell('artifact-update', { artifact: { artifactId: this.artifactId, name, parts: [part] }, append: !first, lastChunk: last });
  }

  message(text) {
    const { taskId, ...message } = this.said(text);
    this.bus.publish(message);
  }

  said(text) {
    const { taskId, contextId } = this.request;
    return { kind: 'message', role: 'agent', messageId: randomUUID(), taskId, contextId, parts: [{ kind: 'text', text }] };
  }

  tell(kind, event) {
    const { taskId, contextId } = this.request;
    this.bus.publish({ kind, taskId, contextId, ...event });
  }
}

const now = () => new Date().toISOString();

// Executor carries turns out for the SDK.
class Executor {
  #turns = new Turns();

  async execute(request, bus) {
    const { taskId: id, contextId: context, userMessage, task } = request;
    const text = userMessage.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
    const waiting = ['input-required', 'auth-required'].includes(task?.status.state);
    await this.#turns.run({ id, context, text, waiting }, new Stage(request, bus));
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    const contextId = this.#turns.abort(taskId);
    bus.publish({ kind: 'status-update', taskId, contextId, status: { state: 'canceled', timestamp: now() }, final: true });
    bus.finished();
  }
}

await agent(({ url, 'api-key': key }) => {
  const card = {
    protocolVersion: '0.3.0',
    name: 'js-0.3-echo',
    description: 'A2A v0.3 on @a2a-js/sdk',
    version: '1',
    url: url + '/invoke',
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: url + '/invoke', transport: 'JSONRPC' },
      { url: url + '/rest', transport: 'HTTP+JSON' },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'Echo', description: 'Repeats what you say', tags: ['test'] }],
    ...(key && { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-API-Key' } }, security: [{ key: [] }] }),
  };
  // This SDK posts push notifications anywhere, private networks included.
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/invoke', jsonRpcHandler(options));
  app.use('/rest', restHandler(options));
  return app;
});
