// SPDX-License-Identifier: Apache-2.0

// A client that speaks A2A v1.0, over JSON-RPC, with -rest over REST, or with -grpc over gRPC, with @a2a-js/sdk 1.3.0.
// With -compat it speaks A2A v0.3 by way of that SDK.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { AgentCard, ListTasksResponse, Message, StreamResponse, Task, TaskPushNotificationConfig } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { credentials } from '@grpc/grpc-js';
import * as undici from 'undici';

import { client } from '../internal/js/client.mjs';

const kinds = { task: 'task', message: 'message', statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };

// Caller is the SDK's client. What it returns is written with the SDK's own JSON.
class Caller {
  constructor(sdk, card, async) {
    this.sdk = sdk;
    this.agentCard = card;
    this.async = async;
  }

  request({ text, task, context }) {
    const message = Message.fromJSON({ role: 'ROLE_USER', messageId: randomUUID(), taskId: task, contextId: context, parts: [{ text }] });
    return { tenant: '', message, configuration: { acceptedOutputModes: [], returnImmediately: this.async }, metadata: undefined };
  }

  async card() {
    return ['card', AgentCard.toJSON(this.agentCard)];
  }

  async send(message) {
    const answer = await this.sdk.sendMessage(this.request(message));
    return 'messageId' in answer ? ['message', Message.toJSON(answer)] : ['task', Task.toJSON(answer)];
  }

  stream(message) {
    return events(this.sdk.sendMessageStream(this.request(message)));
  }

  async get(id) {
    return ['task', Task.toJSON(await this.sdk.getTask({ tenant: '', id }))];
  }

  async list() {
    return ['tasks', ListTasksResponse.toJSON(await this.sdk.listTasks({ tenant: '', contextId: '', status: 0, pageToken: '' }))];
  }

  async cancel(id) {
    return ['task', Task.toJSON(await this.sdk.cancelTask({ tenant: '', id, metadata: undefined }))];
  }

  resubscribe(id) {
    return events(this.sdk.resubscribeTask({ tenant: '', id }));
  }

  async pushSet(taskId, url, token) {
    const config = TaskPushNotificationConfig.fromJSON({ taskId, id: randomUUID(), url, token });
    return ['push-config', TaskPushNotificationConfig.toJSON(await this.sdk.createTaskPushNotificationConfig(config))];
  }

  async pushGet(taskId, id = '') {
    return ['push-config', TaskPushNotificationConfig.toJSON(await this.sdk.getTaskPushNotificationConfig({ tenant: '', taskId, id }))];
  }
}

async function* events(responses) {
  for await (const response of responses) {
    const [[name, value]] = Object.entries(StreamResponse.toJSON(response));
    yield [kinds[name], value];
  }
}

// secured returns whom a call over gRPC trusts and which certificate it presents. A host and a port do not say whether
// there is TLS, so the URL of the card does.
function secured({ url, ca, cert, key }) {
  if (!ca && !url.startsWith('https:')) return credentials.createInsecure();
  const read = (name) => (name ? readFileSync(name) : null);
  return credentials.createSsl(read(ca), read(key), read(cert));
}

await client(
  async (flags, fetchImpl) => {
    const { url, endpoint, async, rest, grpc, compat: enabled } = flags;
    const legacyCompat = { enabled };
    const protocolVersion = enabled ? '0.3' : '1.0';
    let card;
    if (endpoint) {
      const way = { url: endpoint, protocolBinding: grpc ? 'GRPC' : rest ? 'HTTP+JSON' : 'JSONRPC', protocolVersion };
      // The SDK asks the card whether there are streams, so it is told so.
      card = AgentCard.fromJSON({ supportedInterfaces: [way], capabilities: { streaming: true, pushNotifications: true } });
    } else {
      card = await new DefaultAgentCardResolver({ fetchImpl, legacyCompat }).resolve(url);
    }
    // Only what was asked for: a card that does not offer it is an error then, and not a reason to speak otherwise.
    const usable = { ...card, supportedInterfaces: card.supportedInterfaces.filter((way) => way.protocolVersion.startsWith(protocolVersion)) };
    const options = { fetchImpl, legacyCompat };
    const transport = grpc
      ? new GrpcTransportFactory({ grpcChannelCredentials: secured(flags) })
      : rest
        ? new RestTransportFactory(options)
        : new JsonRpcTransportFactory(options);
    return new Caller(await new ClientFactory({ transports: [transport] }).createFromAgentCard(usable), card, async);
  },
  undici,
  { rest: false, grpc: false, compat: false },
);
