// SPDX-License-Identifier: Apache-2.0

// The command line of a client, and what it prints: the same as ../client has for the Go programs.

import { readFileSync, writeSync } from 'node:fs';

import { parse, UsageError } from './arguments.mjs';

// How many words each command takes after its name: at least, at most. A text is any number of words.
const commands = {
  card: [0, 0],
  send: [1, 1000],
  stream: [1, 1000],
  get: [1, 1],
  cancel: [1, 1],
  resubscribe: [1, 1],
  list: [0, 0],
  'push-set': [3, 3],
  'push-get': [1, 2],
};

/**
 * client carries out the command line and ends the process.
 *
 * connect is called with the flags and a fetch that presents the certificate and the API key, and returns what has a
 * method for each command: card(), send(message), stream(message), get(id), cancel(id), resubscribe(id),
 * pushSet(id, url, token), pushGet(id, config) and perhaps list(). They return or yield [kind, value], the value as
 * JSON.stringify takes it. undici is that package, which this folder does not have: the fetch that Node brings along
 * cannot present a certificate.
 */
export async function client(connect, undici, extra = {}) {
  const flags = { url: '', endpoint: '', cert: '', key: '', ca: '', 'api-key': '', task: '', context: '', timeout: 60, async: false, ...extra };
  try {
    const [command, ...words] = parse(process.argv.slice(2), flags);
    check(command, words, flags);
    if (command === 'card') flags.endpoint = ''; // the card is asked for, not circumvented
    setTimeout(() => {
      console.error(`error: no end after ${flags.timeout} s`);
      process.exit(1);
    }, flags.timeout * 1000);
    const caller = await connect(flags, fetchWith(flags, undici));
    for await (const [kind, value] of perform(caller, command, words, flags)) {
      writeSync(1, JSON.stringify({ kind, ...value }) + '\n');
    }
    process.exit(0);
  } catch (error) {
    console.error('error:', [error.message, error.cause?.message].filter(Boolean).join(': '));
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}

function check(command, words, flags) {
  if (!Object.hasOwn(commands, command ?? '')) throw new UsageError(`say what to do: ${Object.keys(commands).join(', ')}`);
  const [least, most] = commands[command];
  if (words.length < least || words.length > most) throw new UsageError(`${command} takes another number of words`);
  if (!flags.url && (!flags.endpoint || command === 'card')) throw new UsageError('name the agent with -url');
  if (!flags.cert !== !flags.key) throw new UsageError('-cert and -key go together');
}

function fetchWith(flags, { Agent, fetch }) {
  const read = (name) => (flags[name] ? readFileSync(flags[name]) : undefined);
  const dispatcher = new Agent({ connect: { cert: read('cert'), key: read('key'), ca: read('ca') }, headersTimeout: 0, bodyTimeout: 0 });
  return (url, init = {}) => {
    const headers = new Headers(init.headers);
    if (flags['api-key']) headers.set('X-API-Key', flags['api-key']);
    return fetch(url, { ...init, headers: Object.fromEntries(headers), dispatcher });
  };
}

async function* perform(caller, command, words, flags) {
  const message = { text: words.join(' '), task: flags.task, context: flags.context };
  switch (command) {
    case 'stream':
      return yield* caller.stream(message);
    case 'resubscribe':
      return yield* caller.resubscribe(words[0]);
    case 'send':
      return yield await caller.send(message);
    case 'push-set':
      return yield await caller.pushSet(...words);
    case 'push-get':
      return yield await caller.pushGet(...words);
    case 'list':
      if (!caller.list) throw new UsageError('this protocol has no list of tasks');
  }
  yield await caller[command](...words);
}
