// SPDX-License-Identifier: Apache-2.0

// What takes the place of a language model in the agents of this folder: the same as model.go beside it says.

import { setTimeout as pause } from 'node:timers/promises';

// What is asked for over the network is bounded, so that no message keeps an agent busy for ever.
const number = (word, most) => (/^\d+$/.test(word ?? '') ? Math.min(Number(word), most) : 0);

// numbers is a text of so many bytes that does not repeat itself, since Gemini CLI stops a model that does.
function numbers(size) {
  let text = '';
  for (let i = 0; text.length < size; i++) text += i + ' ';
  return text.slice(0, size);
}

/** say yields piece by piece what the model answers to a text, where it sees so many messages of users. */
export async function* say(text, seen, signal) {
  const [word, one, two] = text.trim().split(/\s+/);
  switch (word) {
    case 'stream':
      for (let i = 0; i < number(one, 10_000); i++) {
        await pause(number(two, 60_000), undefined, { signal });
        yield `w${i} `;
      }
      return;
    case 'slow':
      yield 'so ';
      await pause(1000 * number(one, 60), undefined, { signal });
      yield `I slept ${one}`;
      return;
    case 'fail':
      for (let i = 0; i < 3; i++) yield `w${i} `;
      throw new Error('the model broke in mid-run');
    case 'big':
      yield numbers(1024 * number(one, 10_000));
      return;
    case 'recall':
      yield `I see ${seen} of your messages`;
      return;
    default:
      yield 'echo: ' + text;
  }
}

/** aiModel is a model of the AI SDK, as its specification v2 or v3 has it. */
export function aiModel(specificationVersion) {
  const v2 = specificationVersion === 'v2';
  const usage = v2
    ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
    : { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const reason = (why) => (v2 ? why : { unified: why, raw: why });
  const read = ({ prompt, abortSignal }) => {
    const users = prompt.filter(({ role }) => role === 'user');
    const { content } = users.at(-1) ?? { content: '' };
    const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
    return say(text, users.length, abortSignal);
  };
  return {
    specificationVersion,
    provider: 'rule',
    modelId: 'rule',
    supportedUrls: {},
    async doGenerate(options) {
      let text = '';
      for await (const piece of read(options)) text += piece;
      return { content: [{ type: 'text', text }], finishReason: reason('stop'), usage, warnings: [] };
    },
    async doStream(options) {
      const stream = new ReadableStream({
        async start(to) {
          to.enqueue({ type: 'stream-start', warnings: [] });
          to.enqueue({ type: 'text-start', id: 'text' });
          try {
            for await (const delta of read(options)) to.enqueue({ type: 'text-delta', id: 'text', delta });
            to.enqueue({ type: 'text-end', id: 'text' });
            to.enqueue({ type: 'finish', finishReason: reason('stop'), usage });
          } catch (error) {
            to.enqueue({ type: 'error', error });
            to.enqueue({ type: 'finish', finishReason: reason('error'), usage });
          }
          to.close();
        },
      });
      return { stream };
    },
  };
}
