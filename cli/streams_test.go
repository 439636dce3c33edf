// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestListStreams checks the requests of caddy aip streams to the admin API, and its output, over several pages.
func TestListStreams(t *testing.T) {
	streamAt := func(id string, behind *uint64) adminapi.Stream {
		return adminapi.Stream{TaskName: adminapi.TaskName{Partner: "P", Leader: "L", Task: id}, Address: "192.0.2.1:4000",
			Transport: "HTTP/2.0", Dialect: "aip", Command: "start", Events: 7, Last: 9, Behind: behind,
			Since: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	}
	behind := uint64(3)
	pages := []any{
		adminapi.StreamPage{Streams: []adminapi.Stream{streamAt("one\x1b[31m", nil)}, Next: "17"},
		adminapi.StreamPage{Streams: []adminapi.Stream{streamAt("two", &behind)}, Next: "18"},
	}
	address, asked := answeringAdmin(t, pages...)
	got := runAIP(t, "streams", "--leader", "L", "--limit", "2", "--address", address)
	list := "" +
		"TASK      SINCE                      EVENTS  BEHIND  TRANSPORT  DIALECT  ADDRESS         LEADER  AGENT\n" +
		"one�[31m  2026-11-22T18:00:00+08:00  7       -       HTTP/2.0   aip      192.0.2.1:4000  L       P\n" +
		"two       2026-11-22T18:00:00+08:00  7       3       HTTP/2.0   aip      192.0.2.1:4000  L       P\n"
	if diff := cmp.Diff(commandResult{Stdout: list}, got); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	want := []string{"GET /aip/streams?leader=L&limit=2", "GET /aip/streams?after=17&leader=L&limit=1"}
	if diff := cmp.Diff(want, asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	address, asked = answeringAdmin(t, adminapi.StreamPage{}, adminapi.StreamPage{})
	got = runAIP(t, "streams", "--task", "t", "--partner", "P", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "No such stream is open.\n"}, got); diff != "" {
		t.Errorf("no stream (-want +got):\n%s", diff)
	}
	want = []string{"GET /aip/streams?limit=100&partner=P&task=t", "GET /aip/streams?limit=1000"}
	if diff := cmp.Diff(want, asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := runAIP(t, "streams", "--limit", "0"); got.Status != 1 {
		t.Errorf("--limit 0 ends with %d", got.Status)
	}
}
