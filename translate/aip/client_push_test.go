// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestPushRefuses(t *testing.T) {
	const fine = `{"type":"task","status":{"state":"working"}}`
	if rep, err := Client("").Push([]byte(" \n"+fine+"\r\n"), nil); err != nil || rep.State != task.Working {
		t.Errorf("got %+v, %v", rep, err)
	}
	for _, body := range []string{
		``, ` `, `null`, `true`, `[]`, `[` + fine + `]`, `{}`, `{"type":"task"}`, fine + fine, fine + `,"x":1`, fine +
			`}`, fine[1:],
		`1,"error":{"code":-32001,"message":""}`, `null,"error":{"code":-32001,"message":""}`, fine + `,"error":null`, `"` +
			fine,
		`{"type":"task","status":{"state":"Completed"}}`, strings.Repeat("[", 1<<20),
	} {
		rep, err := Client("").Push([]byte(body), nil)
		if task.KindOf(err) != task.InvalidAgentResponse || rep.Revision != "" {
			t.Errorf("%.60q: got %+v, %v", body, rep, err)
		}
	}
}

func FuzzClientPush(f *testing.F) {
	f.Add(vector(f, "24-notification-callback.body-completed.json"))
	f.Add(vector(f, "37-group-task-awaiting-input.json"))
	f.Add([]byte(`{"type":"task","status":{"state":"working"}},"x":1`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := Client("gateway").Push(data, nil)
		plausible(t, rep, err)
		if err == nil && !json.Valid(data) {
			t.Fatalf("not JSON: %q", data)
		}
	})
}
