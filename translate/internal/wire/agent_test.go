// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", " a \n\t b\x00c ": "a b c", "\xff\xfe": "", "北京\u2028é": "北京 é",
		strings.Repeat("长", 50):             strings.Repeat("长", 40) + "…",
		strings.Repeat(" ", 1<<20) + "x":    "", // white space is bounded, too
		"<!DOCTYPE html><title>502</title>": "",
		"<HTML><body>Bad gateway":           "",
		"a < b </ c":                        "",
		"a < b":                             "a < b",
		strings.Repeat("x", 40):             strings.Repeat("x", 40),
		strings.Repeat("x", 39) + "  ":      strings.Repeat("x", 39),
		"\u202eevil":                        "evil",
		"a" + strings.Repeat("\n", 100) + strings.Repeat("b", 100): "a " + strings.Repeat("b", 38) + "…",
	} {
		if got := Clean(in, MaxWord); got != want {
			t.Errorf("Clean(%.60q) = %q, want %q", in, got, want)
		}
	}
}

func TestFailed(t *testing.T) {
	table := []Failure{{Code: 1, Kind: task.TaskNotFound, Detail: "the agent does not know this task"}}
	for _, tt := range []struct {
		code    int64
		message string
		data    string
		want    string
	}{
		{1, "", "", "task-not-found: the agent does not know this task"},
		{1, "gone\n", "", "task-not-found: the agent does not know this task: gone"},
		{-2, "", "", "internal: the agent reports error -2"},
		{-2, "it failed", `"the quota is used up"`, "internal: the agent reports error -2: it failed: the quota is used up"},
		{-2, "", `"the quota is used up"`, "internal: the agent reports error -2: the quota is used up"},
		{-2, "the quota is used up", `{"detail":"quota"}`, "internal: the agent reports error -2: the quota is used up"},
		{-2, "it failed", `{"code":7,"details":[{"msg":"a is missing"},{"msg":"b"}]}`,
			"internal: the agent reports error -2: it failed: a is missing"},
		{-2, "it failed", `[{"@type":"x","reason":"NO_QUOTA"},{"@type":"y","message":"none left"}]`,
			"internal: the agent reports error -2: it failed: none left"},
		{-2, "it failed", `"Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: none left\n"`,
			"internal: the agent reports error -2: it failed: ValueError: none left"},
		{-2, "it failed", `{"taskId":"t"}`, "internal: the agent reports error -2: it failed"},
	} {
		failure := jsonrpc.Failure{Code: tt.code, Message: tt.message, Data: gjson.Parse(tt.data)}
		if got := Failed(table, &failure).Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestValue: the value and the response are copies, and anything but one JSON value is the agent's mistake.
func TestValue(t *testing.T) {
	body := []byte(`{"result":{"a":1}}`)
	v, err := Value(body, "answer")
	res, failure := Response(body, new(translate.Query))
	if err != nil || failure != nil {
		t.Fatal(err, failure)
	}
	clear(body)
	if v.Raw != `{"result":{"a":1}}` || res.Result.Raw != `{"a":1}` {
		t.Errorf("got %s and %s", v.Raw, res.Result.Raw)
	}
	for body, want := range map[string]string{
		`{`:             "the agent's push is not one JSON value",
		`{"a":1,"a":2}`: "the agent's push is refused: the key appears twice",
	} {
		_, err := Value([]byte(body), "push")
		if task.KindOf(err) != task.InvalidAgentResponse || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := Response([]byte(`{}`), new(translate.Query)); task.KindOf(err) != task.InvalidAgentResponse {
		t.Errorf("no response: %v", err)
	}
}

func TestJoinTexts(t *testing.T) {
	said := func(s string) task.DataItem {
		return task.DataItem{Kind: task.TextItem, Text: s, Metadata: []byte(`{}`)}
	}
	data := task.DataItem{Kind: task.DataKind, Data: []byte(`{}`)}
	items := []task.DataItem{task.Text("a"), task.Text("b"), said("c"), task.Text("d"), data, task.Text("e"),
		task.Text(""), task.Text("f")}
	want := []task.DataItem{task.Text("ab"), said("c"), task.Text("d"), data, task.Text("ef")}
	if d := cmp.Diff(want, JoinTexts(nil, items)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, JoinTexts(items[:0], items)); d != "" {
		t.Errorf("in place: %s", d)
	}
}

// TestDeepReasons: words deeper in an error than any agent's are not looked for.
func TestDeepReasons(t *testing.T) {
	for _, level := range []string{`{"msg":%}`, `[%]`} {
		before, behind, _ := strings.Cut(level, "%")
		for depth, want := range map[int]string{0: "why", maxReasonDepth: "why", maxReasonDepth + 1: "", 50: ""} {
			v := gjson.Parse(strings.Repeat(before, depth) + `"why"` + strings.Repeat(behind, depth))
			if got := Reason(v); got != want {
				t.Errorf("in %d of %s: %q, want %q", depth, level, got, want)
			}
		}
	}
}
