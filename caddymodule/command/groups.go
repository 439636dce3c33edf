// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

func groupsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "groups <command>",
		Short: "Lists and leaves the groups of a running gateway",
		Long: `
Lists the groups in which the Partners of a running gateway take part, shows one of
them, and leaves one. It uses Caddy's admin API.
`,
	}
	onlyGroup(cmd)
	cmd.AddCommand(listGroupsCommand(), showGroupCommand(), leaveGroupCommand())
	return cmd
}

// groupFlags select groups.
type groupFlags struct{ partner, leader, state string }

func (f *groupFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.partner, "partner", "", "of this Partner, by its AIC")
	set.StringVar(&f.leader, "leader", "", "of this Leader")
}

func (f *groupFlags) query(group string) url.Values {
	return queryOf(map[string]string{"partner": f.partner, "leader": f.leader, "group": group, "state": f.state})
}

func listGroupsCommand() *cobra.Command {
	var admin adminFlags
	var filter groupFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [--state <state>] [--leader <aic>] [--partner <aic>]",
		Short: "Lists the groups in which the gateway's Partners take part",
		Long: `
Lists the groups in which the gateway's Partners take part: joining (the invitation is
being answered), joined (connected to the broker), reconnecting (the connection is
lost), waiting (for an invitation, because the broker refuses the token, or it is not
known any more), unregistered (the Partner is not in the configuration) or leaving. LAG
is the number of tasks with changes that are still to be published.
`,
		Example: `  $ caddy aip groups list
  $ caddy aip groups list --state waiting --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list adminapi.GroupList
			raw, err := admin.ask(http.MethodGet, adminapi.Groups, filter.query(""), nil, &list)
			if err != nil {
				return err
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(raw)
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			if len(list.Groups) == 0 {
				fmt.Fprintln(table, "No Partner takes part in such a group.")
			} else {
				fmt.Fprintln(table, "GROUP\tSTATE\tMEMBERS\tTASKS\tLAG\tUNCONFIRMED\tBROKER\tLEADER\tLAST ERROR")
			}
			for i := range list.Groups {
				g := &list.Groups[i]
				fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", clean(g.Group), stateOf(g), len(g.Members),
					g.Tasks, g.Lag, g.Unconfirmed, clean(g.Broker), clean(g.Leader), clean(orDash(g.LastError)))
			}
			return table.Flush()
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	cmd.Flags().StringVar(&filter.state, "state", "", "joining, joined, reconnecting, waiting, unregistered or leaving")
	jsonFlag(cmd, &asJSON)
	return cmd
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

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// find returns the group of a name. There must be one.
func (f *groupFlags) find(admin *adminFlags, group string) (g adminapi.Group, raw []byte, err error) {
	var list adminapi.GroupList
	if raw, err = admin.ask(http.MethodGet, adminapi.Groups, f.query(group), nil, &list); err != nil {
		return g, nil, err
	}
	switch len(list.Groups) {
	case 0:
		return g, nil, fmt.Errorf("no Partner takes part in the group %q", group)
	case 1:
		return list.Groups[0], raw, nil
	}
	return g, nil, errors.New("several groups have this name; say which by --leader and --partner")
}

func showGroupCommand() *cobra.Command {
	var admin adminFlags
	var filter groupFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show <group> [--leader <aic>] [--partner <aic>]",
		Short: "Shows a group: its members, its broker and its counters",
		Long: `
Shows a group in which a Partner of the gateway takes part. The counters begin with the
process. If several Leaders or Partners have a group of this name, say which.
`,
		Example: `  $ caddy aip groups show trip-1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, raw, err := filter.find(&admin, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(raw)
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			number := func(n uint64) string { return strconv.FormatUint(n, 10) }
			for _, line := range [][2]string{
				{"group", g.Group}, {"leader", g.Leader}, {"partner", g.Partner},
				{"members", strings.Join(g.Members, " ")}, {"joined", stamp(g.Joined) + " by " + g.Dialect},
				{"state", stateOf(&g) + " since " + stamp(g.Since)}, {"last error", orDash(g.LastError)},
				{"next try", soon(g.NextAttempt)},
				{"broker", g.Broker}, {"vhost", g.VHost}, {"node", orDash(g.Node)}, {"exchange", g.Exchange},
				{"queue", g.Queue}, {"tasks", strconv.Itoa(g.Tasks)}, {"lag", strconv.Itoa(g.Lag)},
				{"unconfirmed", strconv.Itoa(g.Unconfirmed)}, {"received", number(g.Received)},
				{"executed", number(g.Executed)}, {"ignored", number(g.Ignored)}, {"poison", number(g.Poison)},
				{"published", number(g.Published)}, {"confirmed", number(g.Confirmed)},
			} {
				fmt.Fprintf(table, "%s\t%s\n", line[0], clean(line[1]))
			}
			return table.Flush()
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

func leaveGroupCommand() *cobra.Command {
	var admin adminFlags
	var filter groupFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "leave <group> [--leader <aic>] [--partner <aic>]",
		Short: "Leaves a group",
		Long: `
Leaves a group, as if its Leader had asked for it: tasks of the group that have not
ended are canceled, the Partner says in the group that it is not connected any more,
and its queue is deleted. AIP has Leaders decide who leaves, so use it only for a group
that its Leader has given up.
`,
		Example: `  $ caddy aip groups leave trip-1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, _, err := filter.find(&admin, args[0])
			if err != nil {
				return err
			}
			var out adminapi.GroupName
			raw, err := admin.ask(http.MethodPost, adminapi.LeaveGroup, nil, g.GroupName, &out)
			if err != nil {
				return err
			}
			return printAnswer(cmd, asJSON, raw, "%s leaves the group %s", clean(out.Partner), clean(out.Group))
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}
