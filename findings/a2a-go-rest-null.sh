#!/usr/bin/env bash
# a2a-go 2.3.1, client of A2A 1.0 by HTTP+JSON: for CancelTask it sends the four bytes "null" as the body, where 2.4.0
# sends no body at all. A server that wants an object, or nothing, refuses each cancel of the older client.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

seen() {
  mkdir "$dir/$1"
  cd "$dir/$1"
  cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

func main() {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s %s %q\n", r.Method, r.URL.Path, body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED"}}`)
	}))
	defer agent.Close()
	ctx := context.Background()
	at := a2a.NewAgentInterface(agent.URL, a2a.TransportProtocolHTTPJSON)
	client, err := a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{at})
	if err != nil {
		panic(err)
	}
	if _, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: "t"}); err != nil {
		panic(err)
	}
}
GO
  go mod init seen 2> /dev/null
  go get "github.com/a2aproject/a2a-go/v2@v$1" 2> /dev/null
  go mod tidy 2> /dev/null
  echo "$1: $(go run .)"
}

diff - <(seen 2.3.1; seen 2.4.0) <<'SEEN'
2.3.1: POST /tasks/t:cancel "null"
2.4.0: POST /tasks/t:cancel ""
SEEN
echo "as described"
