// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// TestLenientContent: what an agent says is read in whatever form.
//
// Lenient: a message that is a string, or has `content` in place of `parts`
// Lenient: parts that are one object or a string, or a part that is a string
// Lenient: another word for the type of a text or of data
// Lenient: artifacts that are one object, or an artifact that is a string
// Lenient: an index that is a string
func TestLenientContent(t *testing.T) {
	status := func(message string) string { return whole(`"status":{"state":"working","message":` + message + `}`) }
	artifacts := func(list string) string { return whole(`"status":{"state":"working"},"artifacts":` + list) }
	const a = "report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	const product = "report whole working (working)\n  product {\"id\":\"artifact-0\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"a string", status(`"a"`), a},
		{"an empty string", status(`""`), "report whole working (working)\n"},
		{"content", status(`{"role":"agent","content":[{"type":"text","text":"a"}]}`), a},
		{"content that is a string", status(`{"content":"a"}`), a},
		{"content that is one part", status(`{"content":{"type":"text","text":"a"}}`), a},
		{"parts that are a string", status(`{"parts":"a"}`), a},
		{"parts that are one object", status(`{"parts":{"type":"text","text":"a"}}`), a},
		{"a part that is a string", status(`{"parts":["a"]}`), a},
		{"capitals", status(`{"parts":[{"type":"TEXT","text":"a"}]}`), a},
		{"a media type", status(`{"parts":[{"type":"text/plain","text":"a"}]}`), a},
		{"markdown", status(`{"parts":[{"kind":"markdown","text":"a"}]}`), a},
		{"JSON", status(`{"parts":[{"type":"json","data":{"b":1}}]}`), "report whole working (working)\n  " +
			"says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\",\"data\":{\"b\":1}}]}\n"},
		{"artifacts that are one object", artifacts(`{"parts":[{"type":"text","text":"a"}]}`), product},
		{"artifacts that are a string", artifacts(`"a"`), product},
		{"an artifact that is a string", artifacts(`["a"]`), product},
		{"an artifact whose parts are a string", artifacts(`[{"parts":"a"}]`), product},
		{"an index that is a string", artifacts(`[{"index":"0","parts":"a"}]`), product},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, a2atest.Show(a2a.Legacy().Reply([]byte(tc.in), nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	got := a2atest.Show(a2a.Legacy().NewStream(nil).Event("", []byte(`{"result":{"id":"t","artifact":"a"}}`)))
	want := "report\n  chunk append=false last=false {\"id\":\"artifact-0\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an event (-want +got):\n%s", diff)
	}
}
