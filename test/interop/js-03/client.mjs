// SPDX-License-Identifier: Apache-2.0

// A client that speaks A2A v0.3, over JSON-RPC or with -rest over REST, with @a2a-js/sdk 0.3.14.

import { randomUUID } from 'node:crypto';

import { Client, ClientFactory, DefaultAgentCardResolver, JsonRpcTransport, JsonRpcTransportFactory, RestTransport, RestTransportFactory } from '@a2a-js/sdk/client';
import * as undici from 'undici';

import { client } from '../internal/js/client.mjs';

// Caller is the SDK's client. Its results and events have their kind within, but for cards and configurations.
class Caller {
  constructor(sdk, card, async) {
    this.sdk = sdk;
    this.agentCard = card;
    this.async = async;
  }

  params({ text, task, context }) {
    const message = { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }] };
    if (task) message.taskId = task;
    if (context) message.contextId = context;
    return this.async ? { message, configuration: { blocking: false } } : { message };
  }

  async card() {
    return ['card', this.agentCard];
  }

  async send(message) {
    return own(await this.sdk.sendMessage(this.params(message)));
  }

  async *stream(message) {
    for await (const event of this.sdk.sendMessageStream(this.params(message))) yield own(event);
  }

  async get(id) {
    return own(await this.sdk.getTask({ id }));
  }

  async cancel(id) {
    return own(await this.sdk.cancelTask({ id }));
  }

  async *resubscribe(id) {
    for await (const event of this.sdk.resubscribeTask({ id })) yield own(event);
  }

  async pushSet(taskId, url, token) {
    return ['push-config', await this.sdk.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { url, token } })];
  }

  async pushGet(id, config) {
    return ['push-config', await this.sdk.getTaskPushNotificationConfig({ id, ...(config && { pushNotificationConfigId: config }) })];
  }
}

const own = (value) => [value.kind, value];

await client(
  async ({ url, endpoint, async, rest }, fetchImpl) => {
    if (endpoint) {
      const transport = rest ? new RestTransport({ endpoint, fetchImpl }) : new JsonRpcTransport({ endpoint, fetchImpl });
      // The SDK asks the card whether there are streams, so it is told so.
      return new Caller(new Client(transport, { capabilities: { streaming: true, pushNotifications: true } }), undefined, async);
    }
    const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(url);
    // Only what was asked for: a card that does not offer it is an error then, and not a reason to speak otherwise.
    const transports = [rest ? new RestTransportFactory({ fetchImpl }) : new JsonRpcTransportFactory({ fetchImpl })];
    return new Caller(await new ClientFactory({ transports }).createFromAgentCard(card), card, async);
  },
  undici,
  { rest: false },
);
