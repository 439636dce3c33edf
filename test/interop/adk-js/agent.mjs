// SPDX-License-Identifier: Apache-2.0

// An agent on Google's ADK for JS 2.0.0, made an agent of A2A v0.3 by its toA2a, with a model by rule. On "ask" its model
// calls a long-running tool, which ADK shows as a question.

import { BaseLlm, LlmAgent, LongRunningFunctionTool, toA2a } from '@google/adk';

import { agent } from '../internal/js/serve.mjs';
import { say } from '../model/model.mjs';

class Rule extends BaseLlm {
  constructor() {
    super({ model: 'rule' });
  }

  async *generateContentAsync(request, stream, signal) {
    let text = '';
    let seen = 0;
    for (const { role, parts } of request.contents) {
      text = '';
      if (role !== 'user') continue;
      seen++;
      for (const { text: said, functionResponse: answer } of parts) {
        if (!answer) text += said ?? '';
        else text += answer.response.result ? `you said: ${answer.response.result}` : 'I wait';
      }
    }
    if (text === 'ask') {
      yield { content: { role: 'model', parts: [{ functionCall: { name: 'colour', args: {} } }] } };
      return;
    }
    let all = '';
    for await (const piece of say(text, seen, signal)) {
      all += piece;
      if (stream) yield { content: { role: 'model', parts: [{ text: piece }] }, partial: true };
    }
    yield { content: { role: 'model', parts: [{ text: all }] }, turnComplete: true };
  }
}

const colour = new LongRunningFunctionTool({
  name: 'colour',
  description: 'asks for a colour',
  execute: () => ({ status: 'pending' }),
});

await agent(({ url }) => {
  const { hostname: host, port } = new URL(url);
  const one = new LlmAgent({ name: 'adk_js', description: 'answers by rule', model: new Rule(), tools: [colour] });
  const app = toA2a(one, { host, port: Number(port), allowUnauthenticated: true });
  return async (request, response) => (await app)(request, response);
});
