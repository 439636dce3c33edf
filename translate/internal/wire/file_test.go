// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestFileURI(t *testing.T) {
	for uri, want := range map[string]struct{ mime, data string }{
		"data:image/png;base64,AAAA":      {"image/png", "AAAA"},
		"data:text/plain;x=1;base64,AA==": {"text/plain;x=1", "AA=="},
		"data:;base64,AAAA":               {"", "AAAA"},
		"data:image/png;base64,":          {}, // no data
		"data:image/png;base64":           {},
		"data:image/png,AAAA":             {}, // not base64
		"data:image/png;base64,A*":        {},
		"https://agent.example/a.png":     {},
		"":                                {},
	} {
		mime, data, ok := ReadDataURI(uri)
		if !ok {
			mime, data = "", ""
		}
		if mime != want.mime || data != want.data || ok != (want.data != "") {
			t.Errorf("%s: %q, %q, %v", uri, mime, data, ok)
		}
		it := task.DataItem{Bytes: data, MIMEType: mime, URI: uri}
		if got := string(AppendFileURI(nil, &it, "")); got != `"`+uri+`"` {
			t.Errorf("%s is written as %s", uri, got)
		}
	}
	unnamed := task.DataItem{Bytes: "AAAA"}
	if got := string(AppendFileURI(nil, &unnamed, "image/png")); got != `"data:image/png;base64,AAAA"` {
		t.Errorf("a file without a type is written as %s", got)
	}
}
