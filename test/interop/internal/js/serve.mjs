// SPDX-License-Identifier: Apache-2.0

// How an agent is started: the same flags as serve.go beside this folder has.

import { Console } from 'node:console';
import { createServer } from 'node:http';

import { parse, UsageError } from './arguments.mjs';

/**
 * agent listens as the command line says and serves what make returns, an http handler. make is called with the
 * flags: url is filled in, and key is the API key to ask for or empty. extra are flags that only this agent has.
 */
export async function agent(make, extra = {}) {
  const flags = { addr: '127.0.0.1:0', url: '', 'api-key': '', ...extra };
  try {
    if (parse(process.argv.slice(2), flags).length > 0) throw new UsageError('an agent takes flags only');
  } catch (error) {
    console.error('error:', error.message);
    process.exit(2);
  }
  // stdout has one line, by which others know that the agent is ready: what the SDK tells goes to stderr.
  globalThis.console = new Console(process.stderr, process.stderr);
  const cut = flags.addr.lastIndexOf(':');
  const server = createServer();
  server.on('error', (error) => {
    console.error('error:', error.message);
    process.exit(1);
  });
  server.listen(Number(flags.addr.slice(cut + 1)), flags.addr.slice(0, cut), () => {
    const { address, port } = server.address();
    flags.url = (flags.url || `http://${address}:${port}`).replace(/\/$/, '');
    server.on('request', guard(flags['api-key'], make(flags)));
    process.stdout.write(`listening on ${address}:${port}\n`);
  });
}

// guard asks for the API key, if there is one, for everything but the card.
function guard(key, handler) {
  return (request, response) => {
    if (key && request.headers['x-api-key'] !== key && !request.url.startsWith('/.well-known/')) {
      response.writeHead(401, { 'Content-Type': 'text/plain' }).end('X-API-Key is missing or wrong\n');
      return;
    }
    handler(request, response);
  };
}
