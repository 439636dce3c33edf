// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildAgentsByNpm has a user ask the agents that people install from npm. They are large: `make wild` alone has
// them.
func TestWildAgentsByNpm(t *testing.T) {
	t.Parallel()
	runAgents(t, wildAgentsByNpm)
}

var wildAgentsByNpm = []wildAgent{
	{
		Pinned:  site.Pinned{Name: "Google ADK for JS", Folder: "adk-js", Of: "@google/adk", NPM: true},
		program: []string{"node", "adk-js/agent.mjs"},
		answer:  adkAnswer,
		theirs: []wildTheirs{
			{deed: "cancel", why: "refuses every cancel; the gateway ends the task for its caller all the same",
				direct:  &wildEnd{Broken: "error -32603: Task cancellation is not supported yet."},
				through: &wildEnd{Settled: []string{"canceled"}}},
			{deed: "cut in a stream", missing: true, why: adkShares},
			{deed: "silence of 50 s after a cut", missing: true, why: adkShares},
		},
	},
	{
		Pinned:  site.Pinned{Name: "Mastra", Folder: "mastra", Of: "@mastra/core", NPM: true},
		program: []string{"node", "mastra/agent.mjs"},
		card:    "/api/.well-known/mastra/agent-card.json", path: "/api/a2a/mastra",
		theirs: []wildTheirs{
			{deed: "question", missing: true, why: "its questions were not tried"},
			{deed: "failure of a send", why: "a send that fails is an error, and makes no task",
				direct:  &wildEnd{Broken: "error -32603: the model broke in mid-run"},
				through: &wildEnd{Settled: []string{"failed"}, Said: []string{"Handler failed: the model broke in mid-run"}}},
			{deed: "cut in a stream", why: mastraCuts, direct: mastraCut, through: mastraCut},
			{deed: "silence of 50 s after a cut", why: mastraCuts, direct: mastraCut, through: mastraCut},
		},
	},
	{
		Pinned:  site.Pinned{Name: "VoltAgent", Folder: "voltagent", Of: "@voltagent/a2a-server", NPM: true},
		program: []string{"node", "voltagent/agent.mjs"},
		card:    "/.well-known/volt/agent-card.json", path: "/a2a/volt",
		theirs: []wildTheirs{
			{deed: "question", missing: true, why: "asks nothing"},
			{deed: "failure of a send", why: "a model that breaks in mid-run fails a send, but completes a stream",
				direct:  &wildEnd{Broken: "error -32603: the model broke in mid-run"},
				through: &wildEnd{Settled: []string{"completed"}, Said: []string{"w0 w1 w2 "}}},
			{deed: "conversation", missing: true, why: "remembers nothing of a conversation"},
			{deed: "cut in a stream", missing: true, why: voltCuts},
			{deed: "silence of 50 s after a cut", missing: true, why: voltCuts},
		},
	},
	{
		Pinned:  site.Pinned{Name: "Gemini CLI", Folder: "gemini-cli", Of: "@google/gemini-cli-a2a-server", NPM: true},
		program: []string{"node", "gemini-cli/agent.mjs"},
		answer: func(u *wildUser) site.Object {
			return u.message(site.Object{"kind": "data", "data": site.Object{"outcome": "proceed_once",
				"callId": u.asks.Get("message.parts.0.data.request.callId").Str}})
		},
		theirs: []wildTheirs{
			{deed: "start", why: geminiSend, direct: &wildEnd{Settled: []string{"input-required"}},
				through: &wildEnd{Settled: []string{"input-required"}, Said: []string{"echo: hello"}}},
			{deed: "failure of a send", why: geminiSend, direct: &wildEnd{Settled: []string{"input-required"}},
				through: &wildEnd{Settled: []string{"input-required"}, Said: []string{
					"Agent Error, unknown agent message: exception TypeError: fetch failed sending request"}}},
			{deed: "a message of 600 KB", missing: true, why: "takes messages of up to 100 KB"},
			{deed: "cut in a stream", why: geminiCuts, direct: geminiCut, through: geminiCut},
			{deed: "silence of 50 s after a cut", why: geminiCuts, direct: geminiCut, through: geminiCut},
		},
	},
}

const (
	adkShares  = "tasks that run at the same time share the id of an artifact, so that none was cut beside the others"
	mastraCuts = "cancels its work when the connection of the stream ends"
	voltCuts   = "a task whose stream is cut says `working` for ever"
	geminiSend = "the answer to a send has no text, but through the gateway it has"
	geminiCuts = "aborts its work when the connection ends"
)

var (
	mastraCut = &wildEnd{Settled: []string{"canceled"}, Said: []string{"Task canceled because the request was aborted."}}
	geminiCut = &wildEnd{Settled: []string{"input-required"}, Said: []string{"Execution aborted by client."}}
)
