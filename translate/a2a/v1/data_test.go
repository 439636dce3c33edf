// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestData: data of any value is written as it was read, from any sender, and also through an agent of 0.3 with data
// always an object.
func TestData(t *testing.T) {
	same := func(part string) {
		t.Helper()
		call, err := a2atest.Decode(t, a2a.V1Server(false), a2atest.Request("SendMessage",
			`{"message":{"messageId":"m","role":"ROLE_USER","parts":[`+part+`]}}`))
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		sent := call.Message.DataItems
		written := func(items []task.DataItem) []byte {
			body := a2a.V1REST().AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: items}}, false)
			return []byte(gjson.GetBytes(body, "message.parts.0").Raw)
		}
		translatetest.SameJSON(t, []byte(part), written(sent))

		older := a2a.V03().AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: sent}}, false)
		echo := gjson.GetBytes(older, "params.message.parts").Raw
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent",`+
			`"parts":%s}}`, echo)
		rep, err := a2a.V03().Reply([]byte(answer), nil)
		if err != nil || len(rep.Products) != 1 {
			t.Fatalf("%s: %+v %v", echo, rep, err)
		}
		tk := task.Task{ID: "t", Status: task.Status{State: task.Working}, Products: rep.Products}
		shown := a2a.V1RESTServer(false).AppendTask(nil, nil, new(translate.Call), &tk)
		translatetest.SameJSON(t, []byte(part), []byte(gjson.GetBytes(shown, "artifacts.0.parts.0").Raw))

		rep, err = a2a.V1REST().Reply([]byte(`{"message":{"messageId":"m","parts":[`+part+`]}}`), nil)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		translatetest.SameJSON(t, []byte(part), written(rep.Products[0].DataItems))
	}
	for _, part := range []string{`{"data":{"value":5}}`, `{"data":{"value":null}}`, `{"data":5}`, `{"data":null}`,
		`{"data":{"value":{"value":5}}}`, `{"data":{"value":5},"metadata":{"data_part_compat":true}}`,
		`{"data":{"value":{"value":5}},"metadata":{"a2a":1,"data_part_compat":true}}`,
		`{"data":{"a":5},"metadata":{"data_part_compat":true}}`, `{"data":5,"metadata":{"a2a":1}}`} {
		same(part)
	}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		part := map[string]any{"data": translatetest.Value(rnd, 3)}
		metadata := translatetest.Metadata(rnd)
		if _, object := part["data"].(map[string]any); object && seed%3 == 0 {
			metadata = translatetest.Marked(metadata)
		}
		if metadata != nil {
			part["metadata"] = metadata
		}
		same(string(translatetest.AsJSON(part)))
	}
}

// TestDataOfSDKs reads the data of A2A's SDKs between their versions: they mark data other than an object, too.
func TestDataOfSDKs(t *testing.T) {
	rep, err := a2a.V03().Reply([]byte(`{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m",`+
		`"role":"agent","parts":[{"kind":"data","data":{"value":[1]},"metadata":{"data_part_compat":true,"k":1}}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	body := a2a.V1REST().AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: rep.Products[0].DataItems}}, false)
	translatetest.SameJSON(t, json.RawMessage(`{"data":[1],"metadata":{"k":1}}`),
		[]byte(gjson.GetBytes(body, "message.parts.0").Raw))
}
