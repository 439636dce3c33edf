// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestIncompleteList: the missing parts of a list of several gateways are named once, and not among its entries.
func TestIncompleteList(t *testing.T) {
	part := adminapi.Partial{Missing: []string{"west\x1b[31m", "shard 3"}}
	address, _ := answeringAdmin(t, adminapi.TaskPage{Partial: part, Tasks: []adminapi.Task{}, Next: "abc"},
		adminapi.TaskPage{Partial: part, Tasks: []adminapi.Task{}})
	got := runAIP(t, "tasks", "list", "--address", address)
	want := commandResult{Stdout: "There is no such task.\n",
		Stderr: "the list is not complete: no answer from west�[31m, shard 3\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSharedList: a list of several gateways names the one of each entry.
func TestSharedList(t *testing.T) {
	address, _ := answeringAdmin(t, adminapi.EndpointList{Endpoints: []adminapi.Endpoint{
		{Of: adminapi.Of{Gateway: "east"}}, {Of: adminapi.Of{Gateway: "west\x1b"}}}})
	got := runAIP(t, "deliveries", "endpoints", "--address", address)
	lines := strings.Split(got.Stdout, "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "  GATEWAY") || !strings.HasSuffix(lines[1], "  east") ||
		!strings.HasSuffix(lines[2], "  west\ufffd") {
		t.Errorf("the list is\n%s%s", got.Stdout, got.Stderr)
	}
	address, _ = answeringAdmin(t, adminapi.QuotaPage{Quotas: []adminapi.QuotaUse{{Gateway: "east", Quota: "q"}}})
	got = runAIP(t, "policy", "quotas", "--address", address)
	lines = strings.Split(got.Stdout, "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[0], "  GATEWAY") || !strings.HasSuffix(lines[1], "  east") {
		t.Errorf("the list of quotas is\n%s%s", got.Stdout, got.Stderr)
	}
}

// TestListWithoutAMatch: a list left empty by a filter says what there is without it.
func TestListWithoutAMatch(t *testing.T) {
	stream := func(task, agent string) adminapi.Stream {
		return adminapi.Stream{TaskName: adminapi.TaskName{Partner: "https://agent", Leader: "ann", Task: task},
			OfAgent: adminapi.OfAgent{AgentName: agent}}
	}
	all := []adminapi.Stream{stream("a", "travel"), stream("b", "travel"), stream("c\x1b", ""), stream("d", "travel"),
		stream("e", "travel"), stream("f", "travel")}
	none := adminapi.StreamPage{Streams: []adminapi.Stream{}}
	for _, tt := range []struct {
		args  []string
		pages []any
		want  string
	}{
		{[]string{"--task", "x", "--partner", "y"}, []any{none, adminapi.StreamPage{Streams: all}},
			"No such stream is open. Without this filter: 6, with partner https://agent, travel; " +
				"task a, b, c\ufffd, d, e and 1 more.\n"},
		{[]string{"--leader", "x"}, []any{none, adminapi.StreamPage{Streams: all[:1]}},
			"No such stream is open. Without this filter: 1, with leader ann.\n"},
		{[]string{"--leader", "x"}, []any{none, none}, "No such stream is open.\n"},
		{nil, []any{none}, "No such stream is open.\n"},
	} {
		address, _ := answeringAdmin(t, tt.pages...)
		got := runAIP(t, append([]string{"streams", "--address", address}, tt.args...)...)
		if diff := cmp.Diff(commandResult{Stdout: tt.want}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}
