// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deliveries <command>",
		Short: "Lists and replays notifications that were not delivered",
		Long: `
Lists the notifications that a running gateway has not delivered yet, or has given
up, and replays them. It uses Caddy's admin API.
`,
	}
	onlyGroup(cmd)
	cmd.AddCommand(listDeliveriesCommand(), showDeliveryCommand(), replayDeliveriesCommand(), endpointsCommand(),
		switchCommand("disable", "Holds all notifications to an endpoint", adminapi.DisableEndpoint),
		switchCommand("enable", "Resumes all notifications to an endpoint", adminapi.EnableEndpoint))
	return cmd
}

// adminFlags are the address of the admin API.
type adminFlags struct{ address, config, adapter string }

func (f *adminFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.address, "address", "", "address of Caddy's admin API; default: that of --config, or localhost:2019")
	set.StringVar(&f.config, "config", "", "the running Caddy's configuration file")
	set.StringVar(&f.adapter, "adapter", "", "the adapter of --config")
}

// ask sends a request to the admin API. It decodes the answer, and also returns it.
func (f *adminFlags) ask(method, path string, q url.Values, body, into any) ([]byte, error) {
	res, err := f.request(method, path, q, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAdminAnswer))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, errNoGateway
	}
	return data, nil
}

// request sends a request to the admin API. The caller closes the body of the answer.
func (f *adminFlags) request(method, path string, q url.Values, body any) (*http.Response, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	header := make(http.Header)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	res, err := caddycmd.AdminAPIRequest(address, method, path, header, content)
	if err != nil && strings.Contains(err.Error(), "connect: ") { // Caddy does not wrap the cause
		return nil, fmt.Errorf("%w; is Caddy running, with its admin API at this address? See --address and --config", err)
	}
	return res, answered(err)
}

// answered returns the sentence of an error that the admin API has answered. Caddy returns the answer as text.
func answered(err error) error {
	if err == nil {
		return nil
	}
	_, answer, _ := strings.Cut(err.Error(), "caddy responded with error: HTTP ")
	_, body, _ := strings.Cut(answer, ": ")
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &refused) != nil || refused.Error == "" {
		return err
	}
	return errors.New(clean(refused.Error))
}

var errNoGateway = errors.New("the server at this address is not the admin API of a gateway; see --address")

// maxAdminAnswer is the largest size of an answer of the admin API, in bytes.
const maxAdminAnswer = 16 << 20

// filterFlags select deliveries.
type filterFlags struct {
	status, partner, leader, task, webhook, host string
	ids                                          []string
}

func (f *filterFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.status, "status", "", "pending, failing, dead or disabled")
	set.StringVar(&f.partner, "partner", "", "of this Partner: its AIC, or its agent's URL")
	set.StringVar(&f.leader, "leader", "", "of this Leader's tasks")
	set.StringVar(&f.task, "task", "", "of the task with this id")
	set.StringVar(&f.webhook, "webhook", "", "of the webhook with this id")
	set.StringVar(&f.host, "host", "", "to this host")
	set.StringArrayVar(&f.ids, "id", nil, "with this webhook-id; may be repeated")
}

// queryOf returns a query of the parameters that are not empty.
func queryOf(parameters map[string]string) url.Values {
	q := make(url.Values)
	for name, value := range parameters {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func (f *filterFlags) query() url.Values {
	q := queryOf(map[string]string{
		"status": f.status, "partner": f.partner, "leader": f.leader, "task": f.task, "webhook": f.webhook, "host": f.host,
	})
	if len(f.ids) > 0 {
		q["id"] = f.ids
	}
	return q
}

func listDeliveriesCommand() *cobra.Command {
	var filter filterFlags
	list := listing[adminapi.DeliveryPage, adminapi.Delivery]{
		path:    adminapi.Deliveries,
		entries: func(p *adminapi.DeliveryPage) ([]adminapi.Delivery, string) { return p.Deliveries, p.Next },
		header:  "STATUS\tSTATE\tTASK\tENDPOINT\tTRIED\tNEXT\tLAST\tID",
		row: func(d *adminapi.Delivery) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s", d.Status, d.State, clean(d.Task),
				d.Endpoint, d.Attempts, soon(d.Next), clean(lastOf(d)), d.ID)
		},
		none: "Nothing waits to be delivered.",
	}
	cmd := &cobra.Command{
		Use:   "list [--status <status>] [--task <id>] [--host <host>] [...]",
		Short: "Lists the notifications that were not delivered",
		Long: `
Lists the notifications that were not delivered, in the order of their next attempt:
pending (not tried yet), failing (will be retried), dead (given up, kept as a dead
letter for 7 days) and disabled (held, because the webhook or its endpoint is
disabled).
`,
		Example: `  $ caddy aip deliveries list --status dead
  $ caddy aip deliveries list --task task-1 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list.print(cmd, filter.query()) },
	}
	list.add(cmd.Flags(), "notifications")
	filter.add(cmd.Flags())
	return cmd
}

func showDeliveryCommand() *cobra.Command {
	var admin adminFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show <webhook-id>",
		Short: "Shows a notification that was not delivered",
		Long: `
Shows a notification that was not delivered: what it notifies of, how many attempts
were made, when the next one is made, and how each of the last 10 has failed. After a
replay, attempts are counted from 0 again; those before it are still shown.
`,
		Example: `  $ caddy aip deliveries show msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var page adminapi.DeliveryPage
			raw, err := admin.ask(http.MethodGet, adminapi.Deliveries, url.Values{"id": args}, nil, &page)
			if err != nil {
				return err
			}
			if len(page.Deliveries) == 0 {
				return fmt.Errorf("no notification with the webhook-id %s waits or is dead: "+
					"it was delivered, or it was dropped", args[0])
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(raw)
				return err
			}
			d := &page.Deliveries[0]
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, line := range [][2]string{
				{"id", d.ID}, {"status", string(d.Status)}, {"task", d.Task}, {"event", strconv.FormatUint(d.Event, 10)},
				{"state", string(d.State) + " since " + stamp(d.At)}, {"leader", d.Leader}, {"partner", d.Partner},
				{"webhook", d.Webhook}, {"endpoint", d.Endpoint}, {"attempts", strconv.Itoa(d.Attempts)},
				{"last", lastOf(d)}, {"next", soon(d.Next)},
			} {
				fmt.Fprintf(table, "%s\t%s\n", line[0], clean(line[1]))
			}
			if err := table.Flush(); err != nil || len(d.Recent) == 0 {
				return err
			}
			fmt.Fprintln(table, "\nATTEMPT\tDURATION\tRESULT")
			for _, a := range d.Recent {
				fmt.Fprintf(table, "%s\t%s\t%s\n", stamp(a.At), time.Duration(a.DurationMS)*time.Millisecond,
					clean(resultOf(a.Status, a.Error)))
			}
			return table.Flush()
		},
	}
	admin.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

// jsonFlag adds the flag of a command that prints what the admin API answers.
func jsonFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVar(into, "json", false, "print the JSON of the admin API")
}

// printAnswer prints an answer of the admin API as it is, or else a sentence.
func printAnswer(cmd *cobra.Command, asJSON bool, raw []byte, format string, args ...any) error {
	if asJSON {
		_, err := cmd.OutOrStdout().Write(raw)
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// lastOf says how the last attempt ended.
func lastOf(d *adminapi.Delivery) string { return resultOf(d.LastStatus, d.LastError) }

// resultOf says how an attempt ended.
func resultOf(status int, why string) string {
	switch {
	case why != "":
		return why
	case status != 0:
		return "HTTP " + strconv.Itoa(status)
	}
	return "-"
}

// soon returns the time until a moment.
func soon(at time.Time) string {
	switch wait := time.Until(at).Round(time.Second); {
	case at.IsZero():
		return "-"
	case wait <= 0:
		return "now"
	default:
		return "in " + wait.String()
	}
}

func replayDeliveriesCommand() *cobra.Command {
	var admin adminFlags
	var asJSON bool
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "replay [<webhook-id>...] [--task <id>] [--host <host>] [--status dead] [...]",
		Short: "Sends dead notifications again",
		Long: `
Sends notifications again that were given up, with as many attempts as new ones and
with the same webhook-ids. Select them by their ids, by the flags of list, or all
of them by --status dead.
`,
		Example: `  $ caddy aip deliveries replay msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea
  $ caddy aip deliveries replay --host hooks.example.com`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter.ids = append(filter.ids, args...)
			var out adminapi.Replayed
			raw, err := admin.ask(http.MethodPost, adminapi.ReplayDeliveries, filter.query(), nil, &out)
			if err != nil {
				return err
			}
			return printAnswer(cmd, asJSON, raw, "%d to be sent again", out.Replayed)
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

func endpointsCommand() *cobra.Command {
	var admin adminFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "endpoints",
		Short: "Lists the endpoints of webhooks",
		Long: `
Lists the endpoints (scheme, host and port) of recent and waiting notifications, and
the state of their circuit breakers: closed (the endpoint works), open (it fails, and
gets no requests for a while), half-open (it is being tested) or disabled.
`,
		Example: `  $ caddy aip deliveries endpoints`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out adminapi.EndpointList
			raw, err := admin.ask(http.MethodGet, adminapi.Endpoints, nil, nil, &out)
			if err != nil {
				return err
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(raw)
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			if len(out.Endpoints) == 0 {
				fmt.Fprintln(table, "No notifications were delivered recently, and none wait.")
			} else {
				fmt.Fprintln(table, "ENDPOINT\tSTATE\tWAITING\tIN FLIGHT\tFAILURES\tUNTIL")
			}
			for _, e := range out.Endpoints {
				fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\n", e.Endpoint, e.State, e.Queued, e.InFlight, e.Failures, soon(e.Until))
			}
			return table.Flush()
		},
	}
	admin.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

func switchCommand(name, short, path string) *cobra.Command {
	var admin adminFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   name + " <endpoint>",
		Short: short,
		Long: `
` + short + `, which is a scheme, a host and a port, such as
https://hooks.example.com. Its notifications are kept while it is disabled.
`,
		Example: "  $ caddy aip deliveries " + name + " https://hooks.example.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out adminapi.EndpointName
			raw, err := admin.ask(http.MethodPost, path, nil, adminapi.EndpointName{Endpoint: args[0]}, &out)
			if err != nil {
				return err
			}
			return printAnswer(cmd, asJSON, raw, "%s is %sd", out.Endpoint, strings.TrimSuffix(name, "d"))
		},
	}
	admin.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}
