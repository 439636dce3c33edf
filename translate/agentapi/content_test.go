// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestContents tests the item of each content. A content fit for an agent comes back as it was.
func TestContents(t *testing.T) {
	file := func(it task.DataItem) task.DataItem { it.Kind = task.FileItem; return it }
	data := func(s string) task.DataItem { return task.DataItem{Kind: task.DataKind, Data: []byte(s)} }
	for _, tc := range []struct {
		content string
		item    task.DataItem
		sent    string // "" if it is the content
	}{
		{`"type":"text","text":"a\n\"b\""`, task.Text("a\n\"b\""), ""},
		{`"type":"text","text":""`, task.Text(""), ""},
		{`"text":"no type"`, task.Text("no type"), `"type":"text","text":"no type"`},
		{`"type":"refusal","refusal":"no"`,
			task.DataItem{Kind: task.TextItem, Text: "no", Metadata: typed(typeRefusal)}, ""},
		{`"type":"data","data":{"a":[1.0,null]}`, data(`{"a":[1.0,null]}`), ""},
		{`"type":"data","data":[1]`, task.DataItem{Kind: task.DataKind, Data: []byte(`{"value":[1]}`),
			Metadata: []byte(`{"data_part_compat":true}`)}, `"type":"data","data":{"value":[1]}`},
		{`"type":"image","image_url":"https://x/a.PNG?b#c"`,
			file(task.DataItem{URI: "https://x/a.PNG?b#c", MIMEType: "image/png"}), ""},
		{`"type":"image","image_url":"https://x/a"`,
			file(task.DataItem{URI: "https://x/a", Metadata: typed(typeImage)}), ""},
		{`"type":"image","image_url":"data:image/jpeg;base64,QUJD"`,
			file(task.DataItem{MIMEType: "image/jpeg", Bytes: "QUJD"}), ""},
		{`"type":"image","image_url":"data:image/jpeg,ABC"`,
			file(task.DataItem{URI: "data:image/jpeg,ABC", Metadata: typed(typeImage)}), ""},
		{`"type":"video","video_url":"https://x/a.mp4"`,
			file(task.DataItem{URI: "https://x/a.mp4", MIMEType: "video/mp4"}), ""},
		{`"type":"audio","data":"QUJD","format":"mp3"`,
			file(task.DataItem{MIMEType: "audio/mpeg", Bytes: "QUJD"}), ""},
		{`"type":"audio","data":"QUJD","format":"wav"`,
			file(task.DataItem{MIMEType: "audio/wav", Bytes: "QUJD"}), ""},
		{`"type":"audio","data":"https://x/a"`,
			file(task.DataItem{URI: "https://x/a", Metadata: typed(typeAudio)}), ""},
		{`"type":"audio","data":"https://x/a.mp3","format":"mp3"`,
			file(task.DataItem{URI: "https://x/a.mp3", MIMEType: "audio/mpeg"}), ""},
		{`"type":"file","file_url":"https://x/a.pdf","filename":"a.pdf"`,
			file(task.DataItem{URI: "https://x/a.pdf", Name: "a.pdf"}), ""},
		{`"type":"file","file_data":"QUJD"`, file(task.DataItem{Bytes: "QUJD"}),
			`"type":"file","file_data":"data:application/octet-stream;base64,QUJD"`},
		{`"type":"file","file_data":"data:text/plain;base64,QUJD","filename":"b"`,
			file(task.DataItem{MIMEType: "text/plain", Bytes: "QUJD", Name: "b"}), ""},
		{`"type":"file","file_id":"f-1"`, task.DataItem{Kind: task.DataKind, Data: []byte(`{"type":"file","file_id":"f-1"}`),
			Metadata: typed(typeFile)}, ""},
		{`"type":"file","file_id":"f-1","filename":"a"`, task.DataItem{Kind: task.DataKind,
			Data: []byte(`{"type":"file","file_id":"f-1","filename":"a"}`), Metadata: typed(typeFile)}, ""},
		{`"type":"file","file_url":"https://x/a.pdf","filename":"a.pdf","file_id":"f-1"`, file(task.DataItem{
			URI: "https://x/a.pdf", Name: "a.pdf", Metadata: []byte(`{"agentapi":{"file_id":"f-1"}}`)}), ""},
		{`"type":"file"`, data(`{"type":"file"}`), `"type":"data","data":{"type":"file"}`},
		{`"type":"text"`, task.Text(""), `"type":"text","text":""`},
		{`"type":"text","text":null`, task.Text(""), `"type":"text","text":""`},
		{`"type":"hologram","light":1`, data(`{"type":"hologram","light":1}`),
			`"type":"data","data":{"type":"hologram","light":1}`},
		{`"type":"text","text":5`, data(`{"type":"text","text":5}`), `"type":"data","data":{"type":"text","text":5}`},
	} {
		got := readContent(gjson.Parse("{" + tc.content + "}"))
		if d := cmp.Diff(tc.item, got); d != "" {
			t.Errorf("%s is read (-want +got):\n%s", tc.content, d)
		}
		want := tc.sent
		if want == "" {
			want = tc.content
		}
		if d := cmp.Diff(want, string(appendContent(nil, &got))); d != "" {
			t.Errorf("%s is sent as (-want +got):\n%s", tc.content, d)
		}
	}
}
