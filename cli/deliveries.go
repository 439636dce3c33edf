// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// deliveries are the notifications not delivered.
var deliveries = &listing[adminapi.DeliveryPage, adminapi.Delivery]{
	path:    adminapi.Deliveries,
	what:    "notifications",
	entries: func(p *adminapi.DeliveryPage) ([]adminapi.Delivery, string) { return p.Deliveries, p.Next },
	header:  "STATUS\tSTATE\tTASK\tENDPOINT\tTRIED\tNEXT\tLAST\tID",
	row: func(d *adminapi.Delivery) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s", clean(cmp.Or(d.Reason, string(d.Status))), d.State,
			clean(d.Task), clean(d.Endpoint+d.Path), d.Attempts, soon(d.Next), clean(lastOf(d)), d.ID)
	},
	none:    "Nothing waits to be delivered.",
	name:    "id",
	missing: "no notification with the webhook-id %s waits or is dead: it was delivered, or it was dropped",
}

func printDelivery(table *tabwriter.Writer, d *adminapi.Delivery) error {
	err := printLines(table, [][2]string{
		{"id", d.ID}, {"status", cmp.Or(d.Reason, string(d.Status))}, {"task", d.Task},
		{"event", strconv.FormatUint(d.Event, 10)},
		{"state", string(d.State) + " since " + stamp(d.At)}, {"agent", joined(d.AgentName, d.Partner)},
		{"leader", d.Leader},
		{"webhook", d.Webhook}, {"endpoint", d.Endpoint + d.Path}, {"attempts", strconv.Itoa(d.Attempts)},
		{"last", lastOf(d)}, {"next", soon(d.Next)},
	})
	if err != nil || len(d.Recent) == 0 {
		return err
	}
	fmt.Fprintln(table, "\nATTEMPT\tDURATION\tRESULT")
	for _, a := range d.Recent {
		fmt.Fprintf(table, "%s\t%s\t%s\n", stamp(a.At), time.Duration(a.DurationMS)*time.Millisecond,
			clean(resultOf(a.Status, a.Error)))
	}
	return nil
}

// lastOf returns the result of the last attempt.
func lastOf(d *adminapi.Delivery) string { return resultOf(d.LastStatus, d.LastError) }

// resultOf returns the result of an attempt.
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

// replayDeliveries is the deed of the command to replay dead letters: those named by arguments, or after a question
// those selected by flags.
func replayDeliveries(a *asking) func([]string) error {
	a.jsonFlag("")
	a.confirmFlag()
	return func(ids []string) error {
		q := a.query(a.route)
		for _, id := range ids {
			q.Add("id", id)
		}
		var selected adminapi.Replayed
		if len(ids) == 0 && !a.yes {
			q.Set("dry_run", "true")
			if _, err := a.ask(a.route, q, nil, &selected); err != nil {
				return err
			}
			q.Del("dry_run")
			if selected.Selected == 0 {
				return errors.New("no dead notification is selected")
			}
			if err := a.confirm(fmt.Sprintf("Send %d dead notifications again?", selected.Selected)); err != nil {
				return err
			}
		}
		var out adminapi.Replayed
		raw, err := a.ask(a.route, q, nil, &out)
		if err != nil {
			return err
		}
		sentence := fmt.Sprintf("%d to be sent again", out.Replayed)
		if more := selected.Selected - out.Replayed; more > 0 && out.Replayed > 0 {
			sentence += fmt.Sprintf("; repeat the command for %d more", more)
		}
		return a.print(raw, sentence)
	}
}

func endpointName(_ *asking, _ url.Values, args []string) (any, error) {
	return adminapi.EndpointName{Endpoint: args[0]}, nil
}

func saySwitched(to string) func(*adminapi.EndpointName) (string, error) {
	return func(e *adminapi.EndpointName) (string, error) { return e.Endpoint + " is " + to, nil }
}
