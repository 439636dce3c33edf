// SPDX-License-Identifier: Apache-2.0

// Gemini CLI as an agent of A2A v0.3, as its own server runs it, with a model by rule: a Gemini API on this machine. On
// "ask" the model writes a file, for which Gemini CLI asks to be allowed.

import { createServer } from 'node:http';
import { join } from 'node:path';

import { agent } from '../internal/js/serve.mjs';
import { say } from '../model/model.mjs';

const workspace = process.cwd();
let files = 0; // that the model had written

const usage = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
const answer = (parts, finishReason) => ({ candidates: [{ index: 0, content: { role: 'model', parts }, ...(finishReason && { finishReason }) }], usageMetadata: usage, modelVersion: 'rule' });

const gemini = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  if (request.url.includes(':countTokens')) return response.end('{"totalTokens":1}');
  if (!request.url.includes(':streamGenerateContent')) {
    // Gemini CLI asks who speaks next, and which model is to answer.
    return response.end(JSON.stringify(answer([{ text: JSON.stringify({ reasoning: 'by rule', next_speaker: 'user', model_choice: 'flash' }) }], 'STOP')));
  }
  // It puts the environment before the first message.
  const said = JSON.parse(body).contents.filter(({ role }) => role === 'user').map(({ parts }) => parts.at(-1));
  const { text = '', functionResponse } = said.at(-1);
  response.setHeader('Content-Type', 'text/event-stream');
  const send = (parts, finish) => response.write(`data: ${JSON.stringify(answer(parts, finish))}\r\n\r\n`);
  const left = new AbortController();
  response.on('close', () => left.abort());
  try {
    if (functionResponse) {
      send([{ text: functionResponse.response.error ?? 'it is blue' }]);
    } else if (text === 'ask') {
      send([{ functionCall: { name: 'write_file', args: { file_path: join(workspace, `colour-${++files}.txt`), content: 'blue\n' } } }]);
    } else {
      for await (const piece of say(text, said.length - 1, left.signal)) send([{ text: piece }]);
    }
    send([{ text: '' }], 'STOP');
    response.end();
  } catch {
    response.destroy();
  }
});
await new Promise((done) => gemini.listen(0, '127.0.0.1', done));

Object.assign(process.env, {
  GEMINI_API_KEY: 'none',
  GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${gemini.address().port}`,
  CODER_AGENT_WORKSPACE_PATH: workspace,
  GIT_AUTHOR_NAME: 'gemini-cli', // it commits the workspace before it writes
  GIT_AUTHOR_EMAIL: 'gemini-cli@localhost',
  GIT_COMMITTER_NAME: 'gemini-cli',
  GIT_COMMITTER_EMAIL: 'gemini-cli@localhost',
});
const { createApp, updateCoderAgentCardUrl } = await import('@google/gemini-cli-a2a-server');
const app = await createApp();
await agent(({ url }) => {
  updateCoderAgentCardUrl(Number(new URL(url).port));
  return app;
});
