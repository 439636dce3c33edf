// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestPassed(t *testing.T) {
	const payload = `{"aip":{"commandParams":{"payload":{"a":[1.0]}}}}`
	for name, tt := range map[string]struct {
		params, extensions string
		passed, with       string // with is passed, as a member of extensions
	}{
		"nothing":         {},
		"no object":       {params: `[1]`},
		"the gateway's":   {params: `{"responseTimeout":1,"timeout":1,"maxProductsBytes":1,"notifyOnStates":[]}`},
		"an empty object": {params: `{}`},
		"as written": {`{"a":[1.0],"timeout":{"b":1},"c\n":"\u0041"}`, ``, `{"a":[1.0],"c\n":"\u0041"}`,
			`{"aip":{"commandParams":{"a":[1.0],"c\n":"\u0041"}}}`},
		"one": {params: `{"payload":{"a":[1.0]},"timeout":1}`, passed: `{"payload":{"a":[1.0]}}`, with: payload},
		"beside the rest": {`{"x":1}`, `{"k":1,"aip":{"y":[2]}}`, `{"x":1}`,
			`{"aip":{"commandParams":{"x":1},"y":[2]},"k":1}`},
		"beside nothing": {`{"x":1}`, `{"k":1,"aip":{}}`, `{"x":1}`, `{"aip":{"commandParams":{"x":1}},"k":1}`},
		"names that mean something elsewhere": {
			`{"skillId":"s","aip":{"z":1},"metadata":{"a2a":1}}`, `{"a2a":{"m":1}}`,
			`{"skillId":"s","aip":{"z":1},"metadata":{"a2a":1}}`,
			`{"aip":{"commandParams":{"skillId":"s","aip":{"z":1},"metadata":{"a2a":1}}},"a2a":{"m":1}}`,
		},
		"extensions alone": {params: `{"timeout":1}`, extensions: `{"a2a":{"m":1}}`, with: `{"a2a":{"m":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Passed(json.RawMessage(tt.params))); got != tt.passed {
				t.Errorf("passed %s, want %s", got, tt.passed)
			}
			if got := string(WithPassed(json.RawMessage(tt.extensions), json.RawMessage(tt.params))); got != tt.with {
				t.Errorf("the extensions are %s, want %s", got, tt.with)
			}
		})
	}
}

func TestItems(t *testing.T) {
	hello, empty := []task.DataItem{task.Text("hello")}, []task.DataItem{task.Text("")}
	params := json.RawMessage(`{"x":1}`)
	for name, tt := range map[string]struct {
		m    task.Message
		want []task.DataItem
	}{
		"items alone":          {task.Message{DataItems: hello}, hello},
		"both":                 {task.Message{DataItems: hello, Params: params}, hello},
		"parameters alone":     {task.Message{Params: params}, empty},
		"those of the gateway": {task.Message{Params: json.RawMessage(`{"timeout":1}`)}, nil},
	} {
		if diff := cmp.Diff(tt.want, Items(&tt.m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
