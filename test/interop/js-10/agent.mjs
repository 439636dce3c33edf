// SPDX-License-Identifier: Apache-2.0

// An agent that speaks A2A v1.0, over JSON-RPC at /invoke and REST under /rest, with @a2a-js/sdk 1.3.0. With -compat
// it answers A2A v0.3 too, at the same places.

import { randomUUID } from 'node:crypto';

import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server';
import { AgentEvent, DefaultExecutionEventBusManager, DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

import { Turns } from '../internal/js/script.mjs';
import { agent } from '../internal/js/serve.mjs';

// Stage is a task at this SDK; it lives as long as a turn. Everything is written as the JSON of A2A v1.0.
class Stage {
  constructor(request, bus) {
    this.request = request;
    this.bus = bus;
    this.artifactId = '';
  }

  begin() {
    const { taskId: id, contextId, userMessage, task } = this.request;
    if (!task) {
      const submitted = Task.fromJSON({ id, contextId, status: status('submitted') });
      submitted.history.push(userMessage);
      this.bus.publish(AgentEvent.task(submitted));
    }
    this.status('working');
  }

  status(state, text) {
    const { taskId, contextId } = this.request;
    const message = text && this.said(text);
    this.bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: status(state, message) })));
  }

  artifact({ name, text, data, file, first, last }) {
    const { taskId, contextId } = this.request;
    let part = { text };
    if (file) part = { raw: file.base64, filename: file.name, mediaType: file.mediaType };
    else if (data) part = { data };
    if (first) this.artifactId = randomUUID();
    const artifact = { artifactId: this.artifactId, name, parts: [part] };
    this.bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, append: !first, lastChunk: last })));
  }

  message(text) {
    const { taskId, ...message } = this.said(text);
    this.bus.publish(AgentEvent.message(Message.fromJSON(message)));
  }

  said(text) {
    const { taskId, contextId } = this.request;
    return { role: 'ROLE_AGENT', messageId: randomUUID(), taskId, contextId, parts: [{ text }] };
  }
}

function status(state, message) {
  const name = 'TASK_STATE_' + state.toUpperCase().replaceAll('-', '_');
  return { state: name, ...(message && { message }), timestamp: new Date().toISOString() };
}

// Executor carries turns out for the SDK, which ends the bus by itself.
class Executor {
  #turns = new Turns();

  async execute(request, bus) {
    const { taskId: id, contextId: context, userMessage, task } = request;
    const text = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
    const waiting = [TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED].includes(task?.status?.state);
    await this.#turns.run({ id, context, text, waiting }, new Stage(request, bus));
  }

  async cancelTask(taskId, bus) {
    const contextId = this.#turns.abort(taskId);
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: status('canceled') })));
    bus.finished();
  }
}

await agent(
  ({ url, 'api-key': key, compat: enabled }) => {
    const versions = enabled ? ['1.0', '0.3'] : ['1.0'];
    const card = AgentCard.fromJSON({
      name: 'js-1.0-echo',
      description: 'A2A v1.0 on @a2a-js/sdk',
      version: '1',
      supportedInterfaces: versions.flatMap((protocolVersion) => [
        { url: url + '/invoke', protocolBinding: 'JSONRPC', protocolVersion },
        { url: url + '/rest', protocolBinding: 'HTTP+JSON', protocolVersion },
      ]),
      capabilities: { streaming: true, pushNotifications: true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 'echo', name: 'Echo', description: 'Repeats what you say', tags: ['test'] }],
      ...(key && {
        securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-API-Key' } } },
        securityRequirements: [{ schemes: { key: { list: [] } } }],
      }),
    });
    // This SDK posts push notifications anywhere, private networks included; v0.3's have another form.
    const hooks = new InMemoryPushNotificationStore();
    const sender = createLegacyAwarePushNotificationSender(hooks);
    const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor(), new DefaultExecutionEventBusManager(), hooks, sender);
    const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled } };
    const app = express();
    app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled } }));
    app.use('/invoke', jsonRpcHandler(options));
    app.use('/rest', restHandler(options));
    return app;
  },
  { compat: false },
);
