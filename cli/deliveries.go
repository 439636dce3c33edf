// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// deliveries are the notifications that were not delivered.
var deliveries = &listing[adminapi.DeliveryPage, adminapi.Delivery]{
	path:    adminapi.Deliveries,
	what:    "notifications",
	entries: func(p *adminapi.DeliveryPage) ([]adminapi.Delivery, string) { return p.Deliveries, p.Next },
	header:  "STATUS\tSTATE\tTASK\tENDPOINT\tTRIED\tNEXT\tLAST\tID",
	row: func(d *adminapi.Delivery) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s", d.Status, d.State, clean(d.Task),
			d.Endpoint, d.Attempts, soon(d.Next), clean(lastOf(d)), d.ID)
	},
	none:    "Nothing waits to be delivered.",
	name:    "id",
	missing: "no notification with the webhook-id %s waits or is dead: it was delivered, or it was dropped",
}

func printDelivery(table *tabwriter.Writer, d *adminapi.Delivery) error {
	err := printLines(table, [][2]string{
		{"id", d.ID}, {"status", string(d.Status)}, {"task", d.Task}, {"event", strconv.FormatUint(d.Event, 10)},
		{"state", string(d.State) + " since " + stamp(d.At)}, {"agent", joined(d.AgentName, d.Partner)},
		{"leader", d.Leader},
		{"webhook", d.Webhook}, {"endpoint", d.Endpoint}, {"attempts", strconv.Itoa(d.Attempts)},
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

// replayed selects the notifications whose ids are arguments, too.
func replayed(_ *asking, q url.Values, args []string) (any, error) {
	for _, id := range args {
		q.Add("id", id)
	}
	return nil, nil
}

func sayReplayed(r *adminapi.Replayed) (string, error) {
	return fmt.Sprintf("%d to be sent again", r.Replayed), nil
}

// endpoints are where webhooks are delivered to.
var endpoints = &listing[adminapi.EndpointList, adminapi.Endpoint]{
	path:    adminapi.Endpoints,
	entries: func(l *adminapi.EndpointList) ([]adminapi.Endpoint, string) { return l.Endpoints, "" },
	header:  "ENDPOINT\tSTATE\tWAITING\tIN FLIGHT\tFAILURES\tUNTIL",
	row: func(e *adminapi.Endpoint) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%s", e.URL, e.State, e.Queued, e.InFlight, e.Failures, soon(e.Until))
	},
	none: "No notifications were delivered recently, and none wait.",
}

func endpointName(_ *asking, _ url.Values, args []string) (any, error) {
	return adminapi.EndpointName{Endpoint: args[0]}, nil
}

func saySwitched(to string) func(*adminapi.EndpointName) (string, error) {
	return func(e *adminapi.EndpointName) (string, error) { return e.Endpoint + " is " + to, nil }
}
