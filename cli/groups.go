// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// groups are the groups of the gateway's Partners.
var groups = &listing[adminapi.GroupList, adminapi.Group]{
	path:    adminapi.Groups,
	entries: func(l *adminapi.GroupList) ([]adminapi.Group, string) { return l.Groups, "" },
	header:  "GROUP\tAGENT\tSTATE\tMEMBERS\tTASKS\tLAG\tUNCONFIRMED\tBROKER\tLEADER\tLAST ERROR",
	row: func(g *adminapi.Group) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s", clean(g.Group),
			agentOf(g.OfAgent, g.Partner), stateOf(g), len(g.Members),
			g.Tasks, g.Lag, g.Unconfirmed, clean(g.Broker), clean(g.Leader), clean(orDash(g.LastError)))
	},
	none:    "No Partner takes part in such a group.",
	name:    "group",
	missing: "no Partner takes part in the group %q",
	several: "several groups have this name; say which by --leader and --partner",
}

// stateOf returns the state of a membership, whether it is muted, and whether its broker takes messages.
func stateOf(g *adminapi.Group) string {
	state := g.State
	if g.Muted {
		state += ", muted"
	}
	if g.Blocked {
		state += ", blocked"
	}
	return state
}

func printGroup(table *tabwriter.Writer, g *adminapi.Group) error {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return printLines(table, [][2]string{
		{"group", g.Group}, {"agent", joined(g.AgentName, g.Partner)}, {"leader", g.Leader},
		{"members", strings.Join(g.Members, " ")}, {"joined", stamp(g.Joined) + " by " + g.Dialect},
		{"state", stateOf(g) + " since " + stamp(g.Since)}, {"last error", orDash(g.LastError)},
		{"next try", soon(g.NextAttempt)},
		{"broker", g.Broker}, {"vhost", g.VHost}, {"node", orDash(g.Node)}, {"exchange", g.Exchange},
		{"queue", g.Queue}, {"tasks", strconv.Itoa(g.Tasks)}, {"lag", strconv.Itoa(g.Lag)},
		{"unconfirmed", strconv.Itoa(g.Unconfirmed)}, {"received", number(g.Received)},
		{"executed", number(g.Executed)}, {"ignored", number(g.Ignored)}, {"poison", number(g.Poison)},
		{"published", number(g.Published)}, {"confirmed", number(g.Confirmed)},
	})
}

// groupName names the group in an argument.
func groupName(a *asking, _ url.Values, args []string) (any, error) {
	g, _, err := groups.find(a, args[0])
	if err != nil {
		return nil, err
	}
	return g.GroupName, nil
}

func sayLeft(g *adminapi.GroupName) (string, error) {
	return fmt.Sprintf("%s leaves the group %s", clean(g.Partner), clean(g.Group)), nil
}
