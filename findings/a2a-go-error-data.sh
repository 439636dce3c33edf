#!/usr/bin/env bash
# a2a-go reads error.data of JSON-RPC in one form only, where JSON-RPC 2.0 and A2A 0.3 allow any value: 2.4.0 wants a list
# or none, 0.3.15 an object or none. With the other form the client loses the error's code: errors.Is finds no "task not
# found", though the agent said -32001. No form serves both versions but an error without data.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	old "github.com/a2aproject/a2a-go/a2a"
	oldclient "github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

func main() {
	for _, data := range []string{``, `,"data":{"taskId":"t"}`, `,"data":[{"@type":"type.googleapis.com/google.protobuf.Struct","value":{"taskId":"t"}}]`} {
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var call struct{ ID json.RawMessage }
			json.NewDecoder(r.Body).Decode(&call)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Task not found"%s}}`, call.ID, data)
		}))
		ctx := context.Background()
		client, err := a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{a2a.NewAgentInterface(agent.URL, a2a.TransportProtocolJSONRPC)})
		if err != nil {
			panic(err)
		}
		_, newErr := client.GetTask(ctx, &a2a.GetTaskRequest{ID: "t"})
		client03, err := oldclient.NewFromEndpoints(ctx, []old.AgentInterface{{URL: agent.URL, Transport: old.TransportProtocolJSONRPC}})
		if err != nil {
			panic(err)
		}
		_, oldErr := client03.GetTask(ctx, &old.TaskQueryParams{ID: "t"})
		kind := "none"
		if data != "" {
			kind = map[byte]string{'{': "object", '[': "list"}[data[8]]
		}
		fmt.Printf("data: %-6s  2.4.0 knows the code: %-5v  0.3.15: %v\n", kind,
			errors.Is(newErr, a2a.ErrTaskNotFound), errors.Is(oldErr, old.ErrTaskNotFound))
		agent.Close()
	}
}
GO
go mod init seen 2> /dev/null
go get github.com/a2aproject/a2a-go@v0.3.15 github.com/a2aproject/a2a-go/v2@v2.4.0 2> /dev/null
go mod tidy 2> /dev/null

diff - <(go run .) <<'SEEN'
data: none    2.4.0 knows the code: true   0.3.15: true
data: object  2.4.0 knows the code: false  0.3.15: true
data: list    2.4.0 knows the code: true   0.3.15: false
SEEN
echo "as described"
