// SPDX-License-Identifier: Apache-2.0

// Package adminapi is the interface of the gateway's part of Caddy's admin API: its routes, and the JSON that they
// take and answer. The aip app serves it, and the commands of package cli use it.
package adminapi

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
)

// The routes.
const (
	Deliveries       = "/aip/deliveries"        // GET: DeliveryPage
	ReplayDeliveries = "/aip/deliveries/replay" // POST: Replayed
	Webhooks         = "/aip/webhooks"          // GET: WebhookList
	Endpoints        = "/aip/endpoints"         // GET: EndpointList
	DisableEndpoint  = "/aip/endpoints/disable" // POST EndpointName: EndpointName
	EnableEndpoint   = "/aip/endpoints/enable"  // POST EndpointName: EndpointName
	Groups           = "/aip/groups"            // GET: GroupList
	LeaveGroup       = "/aip/groups/leave"      // POST GroupName: GroupName
)

// Of says which of several gateways has something; it is empty where one is alone.
type Of struct {
	Gateway string `json:"gateway,omitempty"`
}

// At returns the name of the gateway.
func (o Of) At() string { return o.Gateway }

// OfAgent is the name for people of the Partner that something belongs to; empty if it is in no configuration now.
type OfAgent struct {
	AgentName string `json:"agent_name,omitempty"`
}

// Partial says what a list lacks that several gateways answer: the names of those that have not answered, and shards
// that none of them owns now.
type Partial struct {
	Missing []string `json:"missing,omitempty"`
}

// Cursor is where a page of a list begins that a gateway that is alone numbers. It is a number then, and else a text.
type Cursor string

// MarshalJSON implements json.Marshaler.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(c), 10, 64); err == nil {
		return []byte(c), nil
	}
	return json.Marshal(string(c))
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Cursor) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '"' {
		*c = Cursor(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(c))
}

// Delivery is a notification that was not delivered.
type Delivery struct {
	Of
	OfAgent

	ID         string        `json:"id"`
	Status     notify.Status `json:"status"`
	Partner    string        `json:"partner"`
	Leader     string        `json:"leader"`
	Task       string        `json:"task"`
	Webhook    string        `json:"webhook"`
	Endpoint   string        `json:"endpoint"`
	Event      uint64        `json:"event"`
	State      task.State    `json:"state"`
	At         time.Time     `json:"at"`
	Attempts   int           `json:"attempts"`
	Next       time.Time     `json:"next,omitzero"`
	LastStatus int           `json:"last_status,omitempty"`
	LastError  string        `json:"last_error,omitempty"`
	Recent     []Attempt     `json:"recent_attempts,omitempty"` // oldest first; those before a replay are among them
}

// Attempt is an attempt to deliver a notification that failed.
type Attempt struct {
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	Status     int       `json:"status,omitempty"` // of HTTP; missing if there was no answer
	Error      string    `json:"error,omitempty"`  // why there was no answer
}

// DeliveryPage is a page of deliveries.
type DeliveryPage struct {
	Partial

	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"` // the parameter after of the next page; empty on the last one
}

// Webhook is a webhook of a task, and how far its notifications are.
type Webhook struct {
	Webhook    string        `json:"webhook"`
	Endpoint   string        `json:"endpoint"`
	States     []task.State  `json:"states,omitempty"` // of which it is notified; missing for all
	Status     notify.Status `json:"status"`           // of its next delivery; dead or delivered if there is none
	Reached    uint64        `json:"reached"`          // up to this event, all are delivered or dead letters
	Pending    int           `json:"pending"`
	Dead       int           `json:"dead"`
	Attempts   int           `json:"attempts"` // that were made of the next delivery
	Next       time.Time     `json:"next,omitzero"`
	LastStatus int           `json:"last_status,omitempty"`
	LastError  string        `json:"last_error,omitempty"`
	Reason     string        `json:"disabled_reason,omitempty"`
}

// WebhookList holds the webhooks of a task.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks"`
}

// Replayed says how many dead letters will be sent again.
type Replayed struct {
	Replayed int `json:"replayed"`
}

// Endpoint is where webhooks are delivered to, with the state of its circuit breaker.
type Endpoint struct {
	Of

	URL      string    `json:"endpoint"` // scheme, host and port
	State    string    `json:"state"`
	InFlight int       `json:"in_flight"`
	Queued   int       `json:"queued"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until,omitzero"`
}

// EndpointList holds all endpoints that are in use.
type EndpointList struct {
	Partial

	Endpoints []Endpoint `json:"endpoints"`
}

// EndpointName names an endpoint.
type EndpointName struct {
	Endpoint string `json:"endpoint"`
}
