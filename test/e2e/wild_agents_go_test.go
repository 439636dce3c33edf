// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// TestWildAgentsInGo has a user ask the agents that people write in Go.
func TestWildAgentsInGo(t *testing.T) {
	t.Parallel()
	runAgents(t, wildAgentsInGo)
}

var wildAgentsInGo = []wildAgent{
	{
		wildOf: wildOf{name: "Google ADK for Go", folder: "adk-go", of: "google.golang.org/adk/v2"}, v1: true,
		program: []string{"adk-go"}, answer: adkAnswer,
	},
	{
		wildOf:  wildOf{name: "trpc-a2a-go", folder: "trpc-02", of: "trpc.group/trpc-go/trpc-a2a-go"},
		program: []string{"trpc-02"},
	},
	{
		wildOf: wildOf{name: "a2a-go", folder: "a2a-go-23", of: "github.com/a2aproject/a2a-go/v2"}, v1: true,
		program: []string{"a2a-go-23"},
	},
}

// adkAnswer answers the question of an agent on Google's ADK, which is a call of a tool.
func adkAnswer(u *wildUser) object {
	call := u.asks.Get("message.parts.0.data")
	part := object{"kind": "data", "data": object{"id": call.Get("id").Str, "name": call.Get("name").Str,
		"response": object{"result": "blue"}}, "metadata": object{"adk_type": "function_response"}}
	if u.v1 {
		delete(part, "kind")
	}
	return u.message(part)
}
