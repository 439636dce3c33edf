// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// FuzzText reads all strings of a body, and writes them as they are written without their spelling, also when the body
// was overwritten.
func FuzzText(f *testing.F) {
	for _, one := range []string{
		`a`, `\n`, `\"\\\n\r\t`, `\/`, `\b`, `\u000a`, `\u4f60`, `\ud83d\ude00`, `é`, "\u2028", `a\\`,
	} {
		f.Add(`["`+one+`",{"`+one+`":"`+one+`"}]`, 1)
		f.Add(` {"a":["`+one+`",1],"b":"`+one+`"}`, 700)
	}
	f.Fuzz(func(t *testing.T, body string, times int) {
		// Short texts become long ones.
		body = strings.ReplaceAll(body, `":"`, `":"`+strings.Repeat("x", min(max(times, 0), 1100)))
		body = strings.ReplaceAll(body, `["`, `["`+strings.Repeat(`\n`, min(max(times, 0), 1100)))
		b := []byte(body)
		v, bad := jsonrpc.ParseValue(b, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		type kept struct {
			it         task.DataItem
			text, json string
		}
		var owned []kept
		var read func(v gjson.Result)
		read = func(v gjson.Result) {
			if v.Type == gjson.String {
				want := string(task.AppendString(nil, v.Str))
				it := task.DataItem{Kind: task.TextItem}
				ReadText(&it, v)
				if got := string(it.AppendText(nil)); got != want || it.Text != v.Str {
					t.Fatalf("%s is read as %q, and written %s", v.Raw, it.Text, got)
				}
				OwnText(&it, v)
				owned = append(owned, kept{it, strings.Clone(v.Str), want})
			}
			if v.IsObject() || v.IsArray() {
				jsonrpc.ForEach(v, func(_, v gjson.Result) bool { read(v); return true })
			}
		}
		read(v)
		clear(b)
		for _, k := range owned {
			if got := string(k.it.AppendText(nil)); got != k.json || k.it.Text != k.text {
				t.Fatalf("%s is kept as %q, and written %s", k.json, k.it.Text, got)
			}
		}
	})
}

// TestSpelledText: large texts with the usual escapes keep their spelling, and others do not.
func TestSpelledText(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for raw, want := range map[string]bool{
		`"short"`:                false,
		`"` + long + `"`:         true,
		`"` + long + `\n\"\t\\"`: true,
		`"` + long + `\u000a"`:   false,
		`"` + long + `\/"`:       false,
		`"\b` + long + `"`:       false,
		`"` + long + `é"`:        true,
	} {
		v, bad := jsonrpc.ParseValue([]byte(`{"text":`+raw+`}`), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		jsonrpc.ForEach(v, func(_, v gjson.Result) bool {
			if got := jsonrpc.Usual(v); got != want {
				t.Errorf("%.20s… of %d bytes: %v", raw, len(raw), got)
			}
			return true
		})
	}
	if v := gjson.Parse(`"` + long + `"`); jsonrpc.Usual(v) {
		t.Error("a string that was not checked is a usual one")
	}
}
