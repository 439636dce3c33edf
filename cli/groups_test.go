// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// groupAdmin is an admin API with groups. It returns its address, and the requests to it.
func groupAdmin(t *testing.T, groups ...adminapi.Group) (address string, asked func() []string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		if r.Method == http.MethodPost {
			_, err = w.Write(body)
		} else {
			err = json.NewEncoder(w).Encode(adminapi.GroupList{Groups: groups})
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() []string { return requests }
}

// TestGroups checks the requests of caddy aip groups to the admin API, and its output.
func TestGroups(t *testing.T) {
	trip := adminapi.Group{
		GroupName: adminapi.GroupName{Partner: "P", Leader: "L", Group: "trip-1"},
		State:     "reconnecting", Muted: true, Joined: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
		Members: []string{"P", "Q"}, Broker: "mq.example.com:5671", VHost: "groups", Exchange: "group_L_trip-1",
		Queue: "group_L_trip-1_P", Node: "rabbit@mq", Dialect: "aip",
		Tasks: 3, Lag: 2, Unconfirmed: 5, Received: 9, Executed: 4, Ignored: 3, Poison: 1, Published: 8, Confirmed: 3,
		LastError: "the connection was lost\x1b[31m",
	}
	address, asked := groupAdmin(t, trip)
	got := runAIP(t, "groups", "list", "--leader", "L", "--state", "reconnecting", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "" +
		"GROUP   AGENT  STATE                MEMBERS  TASKS  LAG  UNCONFIRMED  BROKER               LEADER  LAST ERROR\n" +
		"trip-1  P      reconnecting, muted  2        3      2    5            mq.example.com:5671  L       " +
		"the connection was lost�[31m\n"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	got = runAIP(t, "groups", "show", "trip-1", "--address", address)
	for _, line := range []string{"group        trip-1\n", "members      P Q\n", "lag          2\n", "poison       1\n",
		"queue        group_L_trip-1_P\n", "joined       2026-11-22T18:00:00+08:00 by aip\n"} {
		if got.Status != 0 || !strings.Contains(got.Stdout, line) {
			t.Errorf("show does not print %q: %+v", line, got)
		}
	}
	got = runAIP(t, "groups", "leave", "trip-1", "--partner", "P", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "P leaves the group trip-1\n"}, got); diff != "" {
		t.Errorf("leave (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"GET /aip/groups?leader=L&state=reconnecting ", "GET /aip/groups?group=trip-1 ",
		"GET /aip/groups?group=trip-1&partner=P ",
		`POST /aip/groups/leave {"partner":"P","leader":"L","group":"trip-1"}`,
	}, asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestGroupsWithoutOne checks the output if there is no group, or more than one.
func TestGroupsWithoutOne(t *testing.T) {
	none, _ := groupAdmin(t)
	got := runAIP(t, "groups", "list", "--address", none)
	if diff := cmp.Diff(commandResult{Stdout: "No Partner takes part in such a group.\n"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	got = runAIP(t, "groups", "leave", "trip-1", "--address", none)
	if diff := cmp.Diff(commandResult{Status: 1, Stderr: "Error: no Partner takes part in the group \"trip-1\"\n"},
		got); diff != "" {
		t.Errorf("leave (-want +got):\n%s", diff)
	}
	several, asked := groupAdmin(t, adminapi.Group{}, adminapi.Group{})
	got = runAIP(t, "groups", "leave", "trip-1", "--address", several)
	if diff := cmp.Diff(commandResult{Status: 1,
		Stderr: "Error: several groups have this name; say which by --leader and --partner\n"}, got); diff != "" {
		t.Errorf("leave of one of several (-want +got):\n%s", diff)
	}
	if n := len(asked()); n != 1 {
		t.Errorf("%d requests; nothing must be left", n)
	}
}
