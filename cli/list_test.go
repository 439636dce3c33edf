// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// TestIncompleteList: what a list of several gateways lacks is said once, and not among its entries.
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

// TestSharedList: a list of several gateways says which one has an entry.
func TestSharedList(t *testing.T) {
	address, _ := answeringAdmin(t, adminapi.EndpointList{Endpoints: []adminapi.Endpoint{
		{Of: adminapi.Of{Gateway: "east"}}, {Of: adminapi.Of{Gateway: "west\x1b"}}}})
	got := runAIP(t, "deliveries", "endpoints", "--address", address)
	lines := strings.Split(got.Stdout, "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "  GATEWAY") || !strings.HasSuffix(lines[1], "  east") ||
		!strings.HasSuffix(lines[2], "  west\ufffd") {
		t.Errorf("the list is\n%s%s", got.Stdout, got.Stderr)
	}
}
