// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// asInSchema writes the names of all members as the schema has them, but for those in callers' own values.
func asInSchema(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = asInSchema(v[i])
		}
	case map[string]any:
		out := make(map[string]any)
		for name, member := range v {
			if name != "metadata" && name != "data" {
				member = asInSchema(member)
			}
			var b strings.Builder
			for _, r := range name {
				if unicode.IsUpper(r) {
					b.WriteByte('_')
				}
				b.WriteRune(unicode.ToLower(r))
			}
			out[b.String()] = member
		}
		return out
	}
	return v
}

// TestNamesOfTheSchema: a request means the same by either name of its members, and a member with both names is
// refused.
func TestNamesOfTheSchema(t *testing.T) {
	const own = `"metadata":{"task_id":1,"taskId":2},"data":{"task_id":1,"taskId":2}`
	for _, v := range append(valid[:len(valid):len(valid)], struct{ method, params string }{"SendMessage",
		`{"message":{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","referenceTaskIds":["a_b"],` +
			`"parts":[{` + own + `,"mediaType":"x_y"}]},"configuration":{"historyLength":3}}`}) {
		var params any
		if err := json.Unmarshal([]byte(v.params), &params); err != nil {
			t.Fatal(err)
		}
		usual, err := json.Marshal(params) // in the same order
		if err != nil {
			t.Fatal(err)
		}
		other, err := json.Marshal(asInSchema(params))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []translate.Server{a2a.V1Server(false), a2a.V1RESTServer(false)} {
			read := func(params string) (translate.Call, error) {
				req := &translate.Request{}
				req.Method, req.Params = v.method, gjson.Parse(params)
				return s.Decode(req)
			}
			want, err := read(string(usual))
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(string(other))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %s is read otherwise: %v\n%s", s.Name(), other, err, diff)
			}
			got, err = read(`{"message_id":null,` + string(other[1:]))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: with a null: %v\n%s", s.Name(), err, diff)
			}
		}
	}
	for params, field := range map[string]string{
		`{"message":{"taskId":"t","task_id":"t"}}`:                              "params.message.taskId",
		`{"message":{"context_id":"t","contextId":"u"}}`:                        "params.message.contextId",
		`{"message":{"parts":[{"media_type":"a","mediaType":"b"}]}}`:            "params.message.parts.mediaType",
		`{"message":{},"configuration":{"history_length":1,"historyLength":2}}`: "params.configuration.historyLength",
	} {
		_, err := a2atest.Decode(t, a2a.V1Server(false), a2atest.Request("SendMessage", params))
		if e, ok := err.(*task.Error); !ok || e.Kind != task.InvalidParams || e.Field != field {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// TestNamesInQueries is TestNamesOfTheSchema for the query of a URL.
func TestNamesInQueries(t *testing.T) {
	read := func(query string) (translate.Call, error) {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		req := &translate.Request{HTTP: "GET", Query: values}
		req.Method = "ListTasks"
		return a2a.V1RESTServer(false).Decode(req)
	}
	want, err := read("contextId=c&pageSize=7&includeArtifacts=true&statusTimestampAfter=2026-01-02T03:04:05Z")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read("context_id=c&page_size=7&include_artifacts=true&status_timestamp_after=2026-01-02T03:04:05Z")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := read("page_size=7&pageSize=7"); task.KindOf(err) != task.InvalidParams {
		t.Errorf("both names: %v", err)
	}
}

// TestNamesOfAgents: agents may write the names of the schema, too.
func TestNamesOfAgents(t *testing.T) {
	const camel = `{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{` +
		`"messageId":"m","role":"ROLE_AGENT",` +
		`"parts":[{"text":"a","mediaType":"text/x"}]}},"artifacts":[{` +
		`"artifactId":"p","parts":[{"data":{"task_id":1}}]}]}}`
	var v any
	if err := json.Unmarshal([]byte(camel), &v); err != nil {
		t.Fatal(err)
	}
	snake, err := json.Marshal(asInSchema(v))
	if err != nil {
		t.Fatal(err)
	}
	want, err := a2a.V1REST().Reply([]byte(camel), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a2a.V1REST().Reply(snake, nil)
	want.Revision, got.Revision = "", ""
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
