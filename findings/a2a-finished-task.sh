#!/usr/bin/env bash
# A message to a task that has finished is an error of A2A, and each official SDK answers it by another code:
# @a2a-js/sdk 0.3.14 by -32600 (an invalid request), a2a-go 0.3.15 and 2.4.0 by -32602 (invalid parameters), @a2a-js/sdk
# 1.3.0 by -32004 (an unsupported operation), the one that the text of A2A 1.0 names. So a client that begins a new task
# where the old one is over cannot tell that case from its own mistakes by the code.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"

	old "github.com/a2aproject/a2a-go/a2a"
	oldsrv "github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/a2asrv/eventqueue"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// once completes each task at its first message.
type once struct{}

func (once) Execute(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		if yield(a2a.NewSubmittedTask(ec, ec.Message), nil) {
			yield(a2a.NewStatusUpdateEvent(ec, a2a.TaskStateCompleted, nil), nil)
		}
	}
}

func (once) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

type oldOnce struct{}

func (oldOnce) Execute(ctx context.Context, r *oldsrv.RequestContext, q eventqueue.Queue) error {
	if err := q.Write(ctx, old.NewSubmittedTask(r, r.Message)); err != nil {
		return err
	}
	e := old.NewStatusUpdateEvent(r, old.TaskStateCompleted, nil)
	e.Final = true
	return q.Write(ctx, e)
}

func (oldOnce) Cancel(context.Context, *oldsrv.RequestContext, eventqueue.Queue) error { return nil }

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for _, sdk := range []struct {
		name, method, role, part string
		handler                  http.Handler
	}{
		{"a2a-go 0.3.15", "message/send", "user", `{"kind":"text","text":"x"}`, oldsrv.NewJSONRPCHandler(oldsrv.NewHandler(oldOnce{}))},
		{"a2a-go 2.4.0", "SendMessage", "ROLE_USER", `{"text":"x"}`, a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(once{}))},
	} {
		server := httptest.NewServer(sdk.handler)
		send := func(task string) (said struct {
			Result struct {
				ID   string
				Task struct{ ID string }
			}
			Error struct{ Code int }
		}) {
			names := ""
			if task != "" {
				names = fmt.Sprintf(`"taskId":%q,`, task)
			}
			m := fmt.Sprintf(`{"kind":"message","messageId":%q,%s"role":%q,"parts":[%s]}`, "to "+task, names, sdk.role, sdk.part)
			r, _ := http.NewRequest("POST", server.URL, bytes.NewReader(fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":%s}}`, sdk.method, m)))
			r.Header.Set("Content-Type", "application/json")
			if sdk.method == "SendMessage" {
				r.Header.Set("A2A-Version", "1.0")
			}
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				panic(err)
			}
			defer got.Body.Close()
			body, _ := io.ReadAll(got.Body)
			json.Unmarshal(body, &said)
			return said
		}
		first := send("")
		fmt.Println("SEEN", sdk.name, send(first.Result.ID+first.Result.Task.ID).Error.Code)
		server.Close()
	}
}
GO
go mod init seen 2> /dev/null
go get github.com/a2aproject/a2a-go@v0.3.15 github.com/a2aproject/a2a-go/v2@v2.4.0 2> /dev/null
go mod tidy 2> /dev/null

cat > seen.mjs <<'JS'
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const [version] = process.argv.slice(2);
let execute;
let card;
if (version === '0.3.14') {
  card = { name: 'one', url: 'http://localhost', version: '1', protocolVersion: '0.3.0', capabilities: {}, skills: [], defaultInputModes: [], defaultOutputModes: [], description: '' };
  execute = async ({ taskId, contextId, userMessage }, bus) => {
    bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'completed' }, history: [userMessage] });
    bus.finished();
  };
} else {
  const { AgentCard, Task } = await import('@a2a-js/sdk');
  const { AgentEvent } = await import('@a2a-js/sdk/server');
  card = AgentCard.fromJSON({ name: 'one', version: '1', capabilities: {}, supportedInterfaces: [{ url: 'http://localhost', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] });
  execute = async ({ taskId: id, contextId }, bus) => {
    bus.publish(AgentEvent.task(Task.fromJSON({ id, contextId, status: { state: 'TASK_STATE_COMPLETED' } })));
    bus.finished();
  };
}
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), { execute, cancelTask: async () => {} });
const app = express();
app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', async () => {
  const old = version === '0.3.14';
  const send = async (messageId, taskId) => {
    const message = old
      ? { kind: 'message', messageId, taskId, role: 'user', parts: [{ kind: 'text', text: 'x' }] }
      : { messageId, taskId, role: 'ROLE_USER', parts: [{ text: 'x' }] };
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...(!old && { 'a2a-version': '1.0' }) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: old ? 'message/send' : 'SendMessage', params: { message } }),
    });
    return answer.json();
  };
  const { result } = await send('first');
  const { error } = await send('second', result.id ?? result.task.id);
  console.log(`SEEN @a2a-js/sdk ${version} ${error.code}`);
  process.exit();
});
JS
for version in 0.3.14 1.3.0; do
  mkdir "js-$version"
  cp seen.mjs "js-$version"
  (cd "js-$version" && npm install --silent --no-audit --no-fund --ignore-scripts "@a2a-js/sdk@$version" express@5.3.0)
done

diff - <({ go run .; (cd js-0.3.14 && node seen.mjs 0.3.14); (cd js-1.3.0 && node seen.mjs 1.3.0); } 2> errors | grep -a SEEN) <<'SEEN' || { cat errors; exit 1; }
SEEN a2a-go 0.3.15 -32602
SEEN a2a-go 2.4.0 -32602
SEEN @a2a-js/sdk 0.3.14 -32600
SEEN @a2a-js/sdk 1.3.0 -32004
SEEN
echo "as described"
