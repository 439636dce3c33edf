// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

func TestPush(t *testing.T) {
	known := []task.Product{{ID: "artifact-0-out", Name: "out"}}
	const status = `"status":{"state":"completed","message":{"role":"agent","parts":[{"type":"text","text":"ok"}]}}`
	const says = "  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"ok\"}]}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"a task", ` {"id":"t",` + status + `,"artifacts":[{"name":"out","parts":[{"type":"text","text":"a"}]}]}` +
			"\n",
			"report whole awaiting-completion (completed)\n" + says +
				"  product {\"id\":\"artifact-0-out\",\"name\":\"out\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"},
		{"a task without artifacts", `{"id":"t",` + status + `}`, "report whole awaiting-completion (completed)\n" +
			says},
		{"a task in an envelope", whole(status), "report whole awaiting-completion (completed)\n" + says},
		{"a status as a notification",
			`{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":"t","eventType":"task_status_update",` +
				`"event":{"id":"t",` +
				status + `,"final":true}}}`,
			"report awaiting-completion (completed)\n" + says},
		{"an artifact as a notification",
			`{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":"t","eventType":"task_artifact_update",` +
				`"event":{"id":"t","artifact":{"append":true,"lastChunk":true,"parts":[{"type":"text","text":"b"}]}}}}`,
			"report\n  chunk append=true last=true {\"id\":\"artifact-0-out\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"b\"}]}\n"},
		{"an update", `{"eventType":"taskUpdate","taskId":"t",` + status + `}`,
			"report awaiting-completion (completed)\n" + says},
		{"an update with artifacts", `{"eventType":"taskUpdate","taskId":"t",` + status + `,"artifacts":[]}`,
			"report whole awaiting-completion (completed)\n" + says},
		{"nothing", `{}`, "report\n"},
		{"something else", `{"validationToken":"x"}`, "report\n"},
		{"no JSON", `x`, "error invalid-agent-response: the agent's notification is not one JSON value\n"},
		{"two values", `1,"error":{"code":1}`,
			"error invalid-agent-response: the agent's notification is not one JSON value\n"},
		{"empty", ``, "error invalid-agent-response: the agent's notification is not one JSON value\n"},
		{"no object", `[]`, "error invalid-agent-response: the agent's notification is no object\n"},
		{"too deep", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
			"error invalid-agent-response: the agent's notification is refused: objects and arrays are nested more than 64 " +
				"deep\n"},
		{"no such state", `{"status":{"state":"x"}}`,
			"error invalid-agent-response: the agent's answer has the state \"x\", which A2A v0.1 does not have\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := []byte(tc.in)
			rep, err := a2a.Legacy().Push(body, known)
			for i := range body {
				body[i] = '#' // the report is the reader's own
			}
			if diff := cmp.Diff(tc.want, a2atest.Show(rep, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzPush(f *testing.F) {
	f.Add([]byte(`{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"text":"x"}]}]}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"tasks/notifyEvent",` +
		`"params":{"id":"t","event":{"artifact":{"append":true}}}}`))
	f.Add([]byte(`1,"error":{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := a2a.Legacy().Push(body, []task.Product{{ID: "artifact-0-a"}})
		a2atest.Check(t, rep, err)
	})
}
