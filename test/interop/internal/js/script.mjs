// SPDX-License-Identifier: Apache-2.0

// What an agent does when it is told: the same as script.go beside this folder says, word for word.

import { setTimeout as pause } from 'node:timers/promises';

// What is asked for over the network is bounded, so that no message keeps an agent busy for ever.
const maxChunks = 10_000;
const maxPause = 60_000;
const maxTicks = 3600;

/**
 * play carries one turn out: the text of a message, to a task that waits for an answer or not. What happens is
 * told to the stage, which has
 *
 *   begin()              before anything else happens to the task, and not at all before a message
 *   status(state, text)  the state as A2A v0.3 writes it; the text may be missing
 *   artifact({name, text | data | file: {name, mediaType, base64}, first, last})
 *   message(text)        an answer without a task
 *
 * It throws when the signal is aborted.
 */
export async function play(text, waiting, stage, signal) {
  const [word, ...rest] = text.trim().split(' ');
  if (word === 'msg' && !waiting) return stage.message('direct: ' + rest.join(' '));
  stage.begin();
  const whole = (name, part, said) => {
    stage.artifact({ name, ...part, first: true, last: true });
    stage.status('completed', said);
  };
  if (waiting) return whole('answer', { text: 'you said: ' + text }, 'done');
  const number = (index, otherwise, most) => (/^\d+$/.test(rest[index] ?? '') ? Math.min(Number(rest[index]), most) : otherwise);
  switch (word) {
    case 'stream': {
      const chunks = number(0, 3, maxChunks);
      for (let i = 0; i < chunks; i++) {
        await pause(number(1, 100, maxPause), undefined, { signal });
        stage.artifact({ name: 'out', text: `chunk-${i} `, first: i === 0, last: i === chunks - 1 });
      }
      return stage.status('completed', 'streamed');
    }
    case 'slow': {
      const ticks = number(0, 10, maxTicks);
      for (let i = 0; i < ticks; i++) {
        await pause(1000, undefined, { signal });
        stage.status('working', `tick ${i}`);
      }
      return stage.status('completed', 'slow done');
    }
    case 'ask':
      return stage.status('input-required', 'which colour?');
    case 'auth':
      return stage.status('auth-required', 'log in at https://login.example/');
    case 'reject':
      return stage.status('rejected', 'not my job');
    case 'fail':
      return stage.status('failed', 'agent broke');
    case 'file':
      return whole('file', { file: { name: 'hello.txt', mediaType: 'text/plain', base64: 'aGVsbG8K' } }, 'ok');
    case 'data':
      return whole('data', { data: { colour: 'blue', parts: [1, 2, 3] } }, 'ok');
    case 'echo':
      return whole('echo', { text: 'echo: ' + rest.join(' ') }, 'ok');
  }
  return whole('echo', { text: 'echo: ' + text }, 'ok');
}

const maxTasks = 10_000; // whose contexts are remembered, the oldest being forgotten

/**
 * Turns are the turns that are being carried out, by the id of their task, so that they can be aborted.
 */
export class Turns {
  #running = new Map();
  #contexts = new Map();

  /** run carries a turn out, and returns quietly when it is aborted. */
  async run({ id, context, text, waiting }, stage) {
    const turn = new AbortController();
    this.#running.set(id, turn);
    this.#contexts.delete(id); // so that it becomes the newest
    this.#contexts.set(id, context);
    if (this.#contexts.size > maxTasks) this.#contexts.delete(this.#contexts.keys().next().value);
    try {
      await play(text, waiting, stage, turn.signal);
    } catch (error) {
      if (!turn.signal.aborted) throw error;
    } finally {
      if (this.#running.get(id) === turn) this.#running.delete(id);
    }
  }

  /** abort ends the turn of a task, if there is one, and returns the task's context, which the SDKs do not tell. */
  abort(id) {
    this.#running.get(id)?.abort();
    return this.#contexts.get(id) ?? '';
  }
}
