// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildAgentsInGo has a user ask the agents that people write in Go.
func TestWildAgentsInGo(t *testing.T) {
	t.Parallel()
	runAgents(t, wildAgentsInGo)
}

var wildAgentsInGo = []wildAgent{
	{
		Pinned: site.Pinned{Name: "Google ADK for Go", Folder: "adk-go", Of: "google.golang.org/adk/v2"}, v1: true,
		program: []string{"adk-go"}, answer: adkAnswer,
	},
	{
		Pinned:  site.Pinned{Name: "trpc-a2a-go", Folder: "trpc-02", Of: "trpc.group/trpc-go/trpc-a2a-go"},
		program: []string{"trpc-02"},
	},
	{
		Pinned: site.Pinned{Name: "a2a-go", Folder: "a2a-go-23", Of: "github.com/a2aproject/a2a-go/v2"}, v1: true,
		program: []string{"a2a-go-23"},
	},
}

// adkAnswer answers the question of an agent on Google's ADK, which is a call of a tool.
func adkAnswer(u *wildUser) site.Object {
	call := u.asks.Get("message.parts.0.data")
	part := site.Object{"kind": "data", "data": site.Object{"id": call.Get("id").Str, "name": call.Get("name").Str,
		"response": site.Object{"result": "blue"}}, "metadata": site.Object{"adk_type": "function_response"}}
	if u.v1 {
		delete(part, "kind")
	}
	return u.message(part)
}
