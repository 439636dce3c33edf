// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestEndpointOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://A.example.org/x?y": "https://a.example.org:443", "http://a:8080": "http://a:8080",
		"http://a./":             "http://a:80",
		"https://[2001:DB8::1]/": "https://[2001:db8::1]:443", "://": "invalid://",
	} {
		if got := endpointOf(url); got != want {
			t.Errorf("%s is %s", url, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"seq":1,"state":"working","at":"2026-01-01T00:00:00Z"}` + "\n" +
		`{"id":"a","status":{"state":"working"}}`))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, tk, err := decodeRecord(data)
		if err != nil {
			return
		}
		if h.At.Year() < 1 || h.At.Year() > 9999 {
			return // nothing of ours writes it
		}
		again, tk2, err := decodeRecord(encodeRecord(&h, &tk))
		if err != nil {
			return // raw JSON inside, not to be compacted
		}
		if again.Seq != h.Seq || again.Generation != h.Generation || !again.At.Equal(h.At) ||
			tk2.ID != strings.ToValidUTF8(tk.ID, "\ufffd") {
			t.Errorf("%s", cmp.Diff(h, again))
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add(page{at: time.Unix(1, 2), log: taskLog("a"), skip: 3}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := parsePage(s)
		if !ok || s == "" {
			return
		}
		again, ok := parsePage(p.String())
		if !ok || !again.at.Equal(p.at) || again.log != p.log || again.skip != p.skip {
			t.Errorf("%q is %+v, and then %+v", s, p, again)
		}
	})
}

// The ids of notifications keep their parts apart.
func TestWebhookIDs(t *testing.T) {
	en := &entry{Event: 1}
	ids := map[string]bool{}
	for _, id := range []string{
		webhookID("na\x00b\x00c", "d", en), webhookID("na\x00b\x00c", "e", en), webhookID("na\x00b\x00d", "d", en),
		webhookID("na\x00b\x00c", "d", &entry{Event: 2}),
		webhookID("na\x00b\x00c", "d", &entry{Event: 1, Generation: 1}),
	} {
		ids[id] = true
	}
	if len(ids) != 5 {
		t.Errorf("%v", ids)
	}
	if got := new(metadata).wants(1, task.Working); got {
		t.Error("metadata without webhooks wants something")
	}
}
