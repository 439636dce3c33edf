// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// asking is a command of the table adminapi.Routes. It asks a running gateway.
type asking struct {
	*cobra.Command
	route  *adminapi.Route
	table  *adminapi.Command
	admin  adminFlags
	asJSON bool
	yes    bool // nothing is asked; see confirmFlag
}

// A deed is the work of a command of the table. It adds flags of its own, and returns the function to run.
type deed func(*asking) func(args []string) error

// deeds are those of all commands of the table, by name.
var deeds = map[string]deed{
	"tasks list":           tasks.list,
	"tasks show":           showTask,
	"tasks tail":           tailTasks,
	"tasks cancel":         endTask(task.Canceled),
	"tasks fail":           endTask(task.Failed),
	"streams":              streams.list,
	"deliveries list":      deliveries.list,
	"deliveries show":      deliveries.show(printDelivery),
	"deliveries attempts":  showAttempts,
	"deliveries replay":    replayDeliveries,
	"deliveries endpoints": endpoints.list,
	"deliveries disable":   action(endpointName, saySwitched("disabled")),
	"deliveries enable":    action(endpointName, saySwitched("enabled")),
	"groups list":          groups.list,
	"groups show":          groups.show(printGroup),
	"groups leave":         action(groupName, sayLeft),
	"drain":                drain,
	"cluster":              showCluster,
	"cluster move":         action(shardMove, sayMoved),
	"cluster drain":        drainNode,
	"issuers":              issuers.list,
	"discover check":       discoveries.list,
	"acs status":           registrationStatus,
	"acs register":         registerPartner,
	"acs withdraw":         withdrawPartner,
	"certificates list":    obtained.list,
	"certificates renew":   action(certificatesOf, sayRenewed),
	"certificates retire":  action(certificatesOf, sayRetired),
	"policy list":          policyRules.list,
	"policy quotas":        quotaUses.list,
	"store inspect":        surveyStore(false),
	"store verify":         surveyStore(true),
	"store backup":         backupStore,
	"store export":         exportStore,
}

// groupings are the help of commands that are the first word of others.
var groupings = map[string]struct{ short, long string }{
	"tasks": {"Lists, shows, follows and ends the tasks of a running gateway", `
Lists the tasks of a running gateway, of all Leaders, shows one of them with its events,
prints what changes as it happens, and cancels or fails a task. It uses Caddy's admin
API.
`},
	"policy": {"Says what policies decide, and what quotas have counted", `
Says which rule of a configuration decides about a call, lists what the rules and quotas
of a running gateway have decided, and what its quotas have counted.
`},
	"acs": {"Exports, validates, compares and registers the ACS of a Partner", `
Works on an ACS (Agent Capability Specification of ACPs), by which a Partner is registered
and found: exports, validates and compares it, and registers the Partner by way of a
running gateway.
`},
	"groups": {"Lists and leaves the groups of a running gateway", `
Lists the groups in which the Partners of a running gateway take part, shows one of
them, and leaves one. It uses Caddy's admin API.
`},
	"discover": {"Says how the Partners of a running gateway are found", `
Says what discovery servers know of the Partners of a running gateway. It uses Caddy's
admin API.
`},
	"certificates": {"Lists, renews and retires the certificates of Partners", `
Lists the certificates that a running gateway obtains for its Partners from the
certificate authority of ACPs, has them renewed at once, and revokes them. It uses
Caddy's admin API.
`},
	"deliveries": {"Lists and replays notifications that were not delivered", `
Lists the notifications that a running gateway has not delivered yet, or has given
up, and replays them. It uses Caddy's admin API.
`},
	"store": {"Inspects, verifies, repairs, copies, exports and imports a store", `
Inspects, verifies, repairs, copies, exports and imports a store: that of a running
gateway, by Caddy's admin API, or with --store one that no process uses, by its directory.
`},
}

// askingCommands returns the commands of the table by their first words.
func askingCommands() map[string]*cobra.Command {
	commands := make(map[string]*cobra.Command)
	for name, help := range groupings {
		commands[name] = &cobra.Command{Use: name + " <command>", Short: help.short, Long: help.long}
		onlyGroup(commands[name])
	}
	for i := range adminapi.Routes {
		route := &adminapi.Routes[i]
		for j := range route.Commands {
			cmd := askingCommand(route, &route.Commands[j])
			if first, _, more := strings.Cut(route.Commands[j].Name, " "); more {
				commands[first].AddCommand(cmd)
			} else {
				commands[first] = cmd
			}
		}
	}
	return commands
}

func askingCommand(route *adminapi.Route, c *adminapi.Command) *cobra.Command {
	words := strings.Fields(c.Name)
	a := &asking{route: route, table: c, Command: &cobra.Command{
		Use:   strings.TrimSpace(words[len(words)-1] + " " + c.Args),
		Short: c.Short, Long: c.Long, Example: c.Example, Args: argsOf(c.Args),
	}}
	a.admin.add(a.Flags())
	for _, f := range c.Flags {
		if f.Many {
			a.Flags().StringArray(f.Name, nil, f.Help)
		} else {
			a.Flags().String(f.Name, "", f.Help)
		}
	}
	for name, values := range completions {
		if a.Flags().Lookup(name) != nil && (name != "state" || words[0] == "tasks") {
			_ = a.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	run := deeds[c.Name](a)
	a.RunE = func(_ *cobra.Command, args []string) error { return run(args) }
	return a.Command
}

// completions are the values that a shell completes, by the flag.
var completions = map[string][]cobra.Completion{
	"state": append([]cobra.Completion{string(adminapi.PendingTask)}, statesOfAIP()...),
	"sort":  {adminapi.SortNewest, adminapi.SortName},
}

func statesOfAIP() (names []cobra.Completion) {
	for _, s := range task.States() {
		names = append(names, string(s))
	}
	return names
}

// argsOf returns the number of arguments of a command, by the beginning of its help.
func argsOf(help string) cobra.PositionalArgs {
	first, _, _ := strings.Cut(help, " ")
	switch {
	case strings.HasSuffix(first, ">...]"):
		return cobra.ArbitraryArgs
	case strings.HasPrefix(first, "[<"):
		return cobra.MaximumNArgs(1)
	case strings.HasPrefix(first, "<"):
		return cobra.ExactArgs(1)
	}
	return cobra.NoArgs
}

// jsonFlag adds the flag to print the answer of the gateway as it is. more is added to its help.
func (a *asking) jsonFlag(more string) {
	a.Flags().BoolVar(&a.asJSON, "json", false, "print the JSON of the admin API"+more)
}

// text returns the value of a flag; empty for a flag unknown to the command.
func (a *asking) text(name string) string {
	text, _ := a.Flags().GetString(name)
	return text
}

// query returns the parameters of a route given by flags.
func (a *asking) query(route *adminapi.Route) url.Values {
	q := make(url.Values)
	for _, f := range a.table.Flags {
		name := strings.ReplaceAll(f.Name, "-", "_")
		if !slices.Contains(route.Query, name) {
			continue
		}
		if list, err := a.Flags().GetStringArray(f.Name); err == nil && len(list) > 0 {
			q[name] = list
		} else if text := a.text(f.Name); text != "" {
			q.Set(name, momentOf(name, text))
		}
	}
	return q
}

// momentOf returns the value of a parameter: of a time, such as 14:00, the last moment with this time on the clock
// here.
func momentOf(name, text string) string {
	if name != "since" && name != "until" {
		return text
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		clock, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		now := time.Now()
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, time.Local)
		if at.After(now) {
			at = at.AddDate(0, 0, -1)
		}
		return at.Format(time.RFC3339)
	}
	return text
}

// ask sends a request to a route by its first method. It decodes the answer, and also returns it.
func (a *asking) ask(route *adminapi.Route, q url.Values, body, into any) ([]byte, error) {
	method, _, _ := strings.Cut(route.Method, ",")
	return a.admin.ask(method, route.Path, q, body, into)
}

// print prints an answer as it is, if asked for, or else a sentence.
func (a *asking) print(raw []byte, sentence string) error {
	if a.asJSON {
		return writeJSON(a.OutOrStdout(), raw)
	}
	_, err := fmt.Fprintln(a.OutOrStdout(), sentence)
	return err
}

// action returns the deed of a command that has the gateway do something: it asks the command's route, by its flags and
// by what fill makes of the arguments, and prints the answer. Then the error of say is that of the command.
func action[A any](
	fill func(a *asking, q url.Values, args []string) (body any, err error), say func(*A) (string, error),
) deed {
	return func(a *asking) func(args []string) error {
		a.jsonFlag("")
		return func(args []string) error {
			q := a.query(a.route)
			body, err := fill(a, q, args)
			if err != nil {
				return err
			}
			var out A
			raw, err := a.ask(a.route, q, body, &out)
			if err != nil {
				return err
			}
			sentence, failed := say(&out)
			if err := a.print(raw, sentence); err != nil {
				return err
			}
			return failed
		}
	}
}
