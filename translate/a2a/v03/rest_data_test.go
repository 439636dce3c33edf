// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestRESTData: data from a caller of 0.3's HTTP+JSON is shown to it as it was.
func TestRESTData(t *testing.T) {
	for seed := range uint64(2000) {
		it := translatetest.DataItem(rand.New(rand.NewPCG(seed, 3)))
		tk := task.Task{ID: "t", Status: task.Status{State: task.Working},
			Products: []task.Product{{ID: "p", DataItems: []task.DataItem{it}}}}
		show := func() string {
			shown := a2a.V03RESTServer(false).AppendTask(nil, nil, new(translate.Call), &tk)
			return gjson.GetBytes(shown, "artifacts.0.parts.0").Raw
		}
		part := show()
		call, err := rest("POST", "v1/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","content":[`+part+`]}}`)
		if err != nil {
			t.Fatalf("%s: %v", part, err)
		}
		tk.Products[0].DataItems = call.Message.DataItems
		translatetest.SameJSON(t, []byte(part), []byte(show()))
		translatetest.SameJSON(t, it.Data, call.Message.DataItems[0].Data)
	}
}
