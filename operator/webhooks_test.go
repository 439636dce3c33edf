// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestDeliveryFilter: what a query says of deliveries is read, or refused.
func TestDeliveryFilter(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for query, want := range map[string]notify.Filter{
		"": {},
		"status=dead&partner=P&leader=l&task=t&webhook=w&host=h&id=1&id=2&after=a&limit=9": {Status: notify.Dead,
			Partner: "P", Leader: "l", Task: "t", Webhook: "w", Host: "h", IDs: []string{"1", "2"}, After: "a", Limit: 9},
		"since=2026-03-01T10:00:00Z&until=2026-03-01T10:00:00Z": {Since: at, Until: at},
		"endpoint=https://h.example/":                           {URL: "https://h.example/"},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := filterOf(q)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", query, err, diff)
		}
	}
	for _, query := range []string{"status=odd", "since=odd", "until=odd", "limit=0", "endpoint=odd"} {
		q, _ := url.ParseQuery(query)
		if _, err := filterOf(q); task.KindOf(err) != task.InvalidParams {
			t.Errorf("%s is refused by %v", query, err)
		}
	}
}

// TestWithoutWebhooks: the lists are empty, and a replay says which deliveries.
func TestWithoutWebhooks(t *testing.T) {
	p := newAlone(t, nil)
	done := p.try("hello", task.AwaitingCompletion)
	of := "?partner=maps&leader=" + url.QueryEscape(done.Leader) + "&task=" + done.Task
	for request, want := range map[string]string{
		"GET " + adminapi.Deliveries:                                    `{"deliveries":[]}`,
		"GET " + adminapi.Exchanges:                                     `{"kept":false,"attempts":[]}`,
		"GET " + adminapi.Webhooks + of:                                 `{"webhooks":[]}`,
		"GET " + adminapi.Endpoints:                                     `{"endpoints":[]}`,
		"GET " + adminapi.Groups:                                        `{"groups":[]}`,
		"GET " + adminapi.Issuers:                                       `{"issuers":[]}`,
		"GET " + adminapi.PolicyRules:                                   `{"rules":[]}`,
		"GET " + adminapi.Streams:                                       `{"streams":[]}`,
		"POST " + adminapi.ReplayDeliveries + "?status=dead":            `{"replayed":0}`,
		"POST " + adminapi.ReplayDeliveries + "?dry_run=true&task=none": `{"replayed":0}`,
	} {
		method, target, _ := strings.Cut(request, " ")
		if status, text := p.answer(method, target, ""); status != 200 || text != want {
			t.Errorf("%s: %d %s, want %s", request, status, text, want)
		}
	}
	p.refuses(map[string]string{
		"POST " + adminapi.ReplayDeliveries: "Bad Request: say which: by id, task, webhook, host, endpoint, leader, " +
			"partner or since, or all of them by status=dead",
		"POST " + adminapi.ReplayDeliveries + "?status=dead&dry_run=1": `Bad Request: dry_run is "1", but must be true or ` +
			"false",
		"POST " + adminapi.DisableEndpoint + " {}": `Bad Request: the body must be {"endpoint": "https://host"}`,
		"POST " + adminapi.LeaveGroup + " {}": `Bad Request: the body must be {"partner": "…", "leader": "…", ` +
			`"group": "…"}`,
		"GET " + adminapi.Streams + "?after=x": `Bad Request: after is "x", but must be the number of a stream`,
	})
}

// TestEndpoints: an endpoint is disabled and enabled, and listed meanwhile.
func TestEndpoints(t *testing.T) {
	p := newAlone(t, nil)
	const body = `{"endpoint":"https://h.example"}`
	for _, step := range []struct {
		path  string
		state string
	}{{adminapi.DisableEndpoint, "disabled"}, {adminapi.EnableEndpoint, ""}} {
		var name adminapi.EndpointName
		p.ask("POST", step.path, body, &name)
		var list adminapi.EndpointList
		p.ask("GET", adminapi.Endpoints, "", &list)
		state := ""
		for _, e := range list.Endpoints {
			state = string(e.State)
		}
		if !strings.HasPrefix(name.Endpoint, "https://h.example") || state != step.state {
			t.Errorf("%s: %+v, %+v", step.path, name, list)
		}
	}
}
