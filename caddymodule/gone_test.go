// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGoneInJSON: JSON with an option of a former version is refused with the sentence of a Caddyfile, and one with an
// unknown member still is.
func TestGoneInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"store": {"driver": "pebble", "max_events": 1}}`: "the option max_events of store is gone; remove it: 10000 " +
			"events of a task are kept, and max_bytes of them",
		`{"drain": "5s", "strems": {}}`: `json: unknown field "strems"`,
		`{"drain": "5s"}`:               "",
	} {
		got := ""
		if err := json.Unmarshal([]byte(text), new(App)); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestGoneOptions: each option that is gone is refused by its sentence, where it stood.
func TestGoneOptions(t *testing.T) {
	into := map[string]any{"aip": new(App), "aip_gateway": new(Gateway), "aip_identify": new(Identify)}
	for name, without := range gone {
		words := strings.Fields(name)
		text := "1"
		for _, w := range words[1:] {
			text = strings.Replace(text, "1", `{"`+w+`":1}`, 1)
		}
		err := json.Unmarshal([]byte(text), into[words[0]])
		if err == nil || !strings.HasSuffix(err.Error(), " is gone; remove it: "+without) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
