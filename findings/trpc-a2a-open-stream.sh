#!/usr/bin/env bash
# trpc-a2a-go 0.0.3, a server of A2A v0.1: the stream of tasks/sendSubscribe stays open when its turn is over. Where the
# task is completed, the last event says final: true; where the agent asks (input-required), it says final: false, and
# nothing follows. So neither the end of the stream nor "final" tells a client that it is asked: the state alone does.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/server"
	"trpc.group/trpc-go/trpc-a2a-go/taskmanager"
)

// processor brings each task to the state that its message names.
type processor struct{}

func (processor) Process(_ context.Context, _ string, m protocol.Message, h taskmanager.TaskHandle) error {
	text := m.Parts[0].(protocol.TextPart).Text
	said := protocol.NewMessage(protocol.MessageRoleAgent, []protocol.Part{protocol.NewTextPart("well")})
	return h.UpdateStatus(protocol.TaskState(text), &said)
}

func main() {
	tasks, err := taskmanager.NewMemoryTaskManager(processor{})
	if err != nil {
		panic(err)
	}
	card := server.AgentCard{Name: "a", URL: "http://localhost/", Version: "1",
		Capabilities: server.AgentCapabilities{Streaming: true}}
	agent, err := server.NewA2AServer(card, tasks)
	if err != nil {
		panic(err)
	}
	site := httptest.NewServer(agent.Handler())
	for _, state := range []string{"input-required", "completed"} {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":"tasks/sendSubscribe","params":{"id":%q,"message":`+
			`{"role":"user","parts":[{"type":"text","text":%q}]}}}`, state, state)
		q, _ := http.NewRequestWithContext(ctx, http.MethodPost, site.URL+"/", strings.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "text/event-stream")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			panic(err)
		}
		final := false
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data:")
			var e struct {
				Status struct{ State string }
				Final  bool
			}
			if ok && json.Unmarshal([]byte(data), &struct{ Result any }{&e}) == nil && e.Status.State == state {
				final = e.Final
			}
		}
		end := "the stream has ended"
		if errors.Is(lines.Err(), context.DeadlineExceeded) {
			end = "the stream is open"
		}
		fmt.Printf("%s: final %v, %s\n", state, final, end)
		cancel()
	}
	os.Exit(0)
}
GO
go mod init seen 2> /dev/null
go get trpc.group/trpc-go/trpc-a2a-go@v0.0.3 2> /dev/null
go mod tidy 2> /dev/null

diff - <(go run . | grep final) <<'SEEN'
input-required: final false, the stream is open
completed: final true, the stream is open
SEEN
echo "as described"
