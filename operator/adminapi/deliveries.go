// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"time"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
)

// The routes of deliveries and of the endpoints of webhooks.
const (
	Deliveries       = "/aip/deliveries"          // GET: DeliveryPage
	Exchanges        = "/aip/deliveries/attempts" // GET: ExchangeList
	ReplayDeliveries = "/aip/deliveries/replay"   // POST: Replayed
	Webhooks         = "/aip/webhooks"            // GET: WebhookList
	Endpoints        = "/aip/endpoints"           // GET: EndpointList
	DisableEndpoint  = "/aip/endpoints/disable"   // POST EndpointName: EndpointName
	EnableEndpoint   = "/aip/endpoints/enable"    // POST EndpointName: EndpointName
)

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
	Path       string        `json:"path"` // of its URL: of each segment the first and the last letter
	Event      uint64        `json:"event"`
	State      task.State    `json:"state"`
	At         time.Time     `json:"at"`
	Attempts   int           `json:"attempts"`
	Next       time.Time     `json:"next,omitzero"`
	LastStatus int           `json:"last_status,omitempty"`
	LastError  string        `json:"last_error,omitempty"`
	Reason     string        `json:"disabled_reason,omitempty"`
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
	Path       string        `json:"path"`             // as in a Delivery
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

// Replayed says how many dead letters will be sent again, 1000 at most; with dry_run how many the query selects.
type Replayed struct {
	Replayed int `json:"replayed"`
	Selected int `json:"selected,omitempty"` // with dry_run
}

// Exchange is an attempt, delivered or not, with the bodies of the request and of the answer.
type Exchange struct {
	Of
	OfAgent
	Attempt

	Delivered bool       `json:"delivered"`
	ID        string     `json:"id"`
	Partner   string     `json:"partner"`
	Leader    string     `json:"leader"`
	Task      string     `json:"task"`
	Webhook   string     `json:"webhook"`
	Endpoint  string     `json:"endpoint"`
	Path      string     `json:"path"` // as in a Delivery
	Event     uint64     `json:"event"`
	State     task.State `json:"state"`
	Request   Body       `json:"request"`
	Answer    Body       `json:"answer"`
}

// Body is the beginning of a body.
type Body struct {
	Text  string `json:"text"`  // 4 KiB at most
	Bytes int    `json:"bytes"` // the size of the whole body; of an answer, as far as it was read
}

// ExchangeList holds the last attempts with their bodies, newest first.
type ExchangeList struct {
	Partial

	Kept      bool       `json:"kept"` // the configuration has bodies kept
	Exchanges []Exchange `json:"attempts"`
}

// Endpoint is where webhooks are delivered to.
type Endpoint struct {
	Of

	URL      string    `json:"endpoint"` // scheme, host and port
	State    string    `json:"state"`    // sending, trying one, paused or disabled
	InFlight int       `json:"in_flight"`
	Queued   int       `json:"queued"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until,omitzero"` // when it is paused
	Since    time.Time `json:"since,omitzero"` // when it is disabled

	URLs []EndpointURL `json:"urls"`
}

// EndpointURL is one of the URLs of an endpoint, or several whose paths look alike. Its attempts are the last ones, 64
// at most of one Leader.
type EndpointURL struct {
	Path      string    `json:"path"` // as in a Delivery
	Queued    int       `json:"queued"`
	Dead      int       `json:"dead"`
	Attempts  int       `json:"attempts"`
	Delivered int       `json:"delivered"` // of these
	First     time.Time `json:"first,omitzero"`
	MedianMS  float64   `json:"median_ms"`
	P95MS     float64   `json:"p95_ms"`
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

// Flags and parameters by which deliveries are selected.
var (
	ofDelivery = []Flag{
		{"status", "pending, failing, dead or disabled", false},
		{"partner", "of this Partner: its name, its AIC, or its agent's URL", false},
		{"leader", "of this Leader's tasks", false},
		{"task", "of the task with this id", false},
		{"webhook", "of the webhook with this id", false},
		{"host", "to this host", false},
		{"endpoint", "to this endpoint, or this URL: as it is, or as the list of endpoints shows it", false},
		{"since", "since then: 14:00, 2026-03-01T10:00:00Z, or 2h for as long ago", false},
		{"until", "before then", false},
		{"id", "with this webhook-id; may be repeated", true},
	}
	deliveryQuery = []string{"status", "partner", "leader", "task", "webhook", "host", "endpoint", "since", "until", "id",
		"after", "limit"}
)

// deliveryRoutes are the routes of deliveries and their endpoints, and their commands.
var deliveryRoutes = []Route{
	{
		Path: Deliveries, Method: "GET", Console: MayRead,
		Query: deliveryQuery,
		Commands: []Command{{
			Name:  "deliveries list",
			Args:  "[--status <status>] [--task <id>] [--endpoint <url>] [--since <time>] [...]",
			Short: "Lists the notifications that were not delivered",
			Long: `
Lists the notifications that were not delivered, in the order of their next attempt:
pending (not tried yet), failing (will be retried), dead (given up, kept as a dead
letter for 7 days) and disabled (held, because the webhook or its endpoint is
disabled). The time of a notification is when its state was entered, and of a dead one
when it was given up.
`,
			Example: `  $ caddy aip deliveries list --status dead
  $ caddy aip deliveries list --since 14:00 --endpoint https://hooks.example.com
  $ caddy aip deliveries list --task task-1 --json`,
			Flags: ofDelivery,
		}, {
			Name:  "deliveries show",
			Args:  "<webhook-id>",
			Short: "Shows a notification that was not delivered",
			Long: `
Shows a notification that was not delivered: what it notifies of, how many attempts
were made, when the next one is made, and how each of the last 10 has failed. After a
replay, attempts are counted from 0 again; those before it are still shown.
`,
			Example: `  $ caddy aip deliveries show msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea`,
		}},
	},
	{
		Path: ReplayDeliveries, Method: "POST", Console: MayReplay,
		Query: append([]string{"dry_run"}, deliveryQuery...),
		Commands: []Command{{
			Name:  "deliveries replay",
			Args:  "[<webhook-id>...] [--task <id>] [--endpoint <url>] [--since <time>] [--status dead] [...]",
			Short: "Sends dead notifications again",
			Long: `
Sends notifications again that were given up, with as many attempts as new ones and
with the same webhook-ids. Select them by their ids, by the flags of list, or all
of them by --status dead. Without ids it says how many they are, and asks before. One
call sends 1000 at most, of each gateway that shares the store.
`,
			Example: `  $ caddy aip deliveries replay msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea
  $ caddy aip deliveries replay --since 14:00 --endpoint https://hooks.example.com
  $ caddy aip deliveries replay --status dead --yes`,
			Flags: ofDelivery,
		}},
	},
	{
		Path: Exchanges, Method: "GET", Console: MayReplay,
		Query: []string{"partner", "leader", "task", "webhook", "host", "endpoint", "since", "until", "id", "limit"},
		Commands: []Command{{
			Name:  "deliveries attempts",
			Args:  "[<webhook-id>] [--task <id>] [--endpoint <url>] [--since <time>] [...]",
			Short: "Shows the last attempts with what was sent and answered",
			Long: `
Shows the last attempts to deliver notifications, newest first, with the bodies of the
request and of the answer, of which 4 KiB are kept. There are some only if the
configuration has notify { keep_bodies }. They are kept in memory: the last 10 of each
URL.
`,
			Example: `  $ caddy aip deliveries attempts --endpoint https://hooks.example.com --limit 3`,
			Flags:   ofDelivery[1:],
		}},
	},
	{Path: Webhooks, Method: "GET", Query: []string{"partner", "leader", "task"}, Console: MayRead},
	{
		Path: Endpoints, Method: "GET", Console: MayRead,
		Commands: []Command{{
			Name:  "deliveries endpoints",
			Short: "Lists the endpoints of webhooks",
			Long: `
Lists the endpoints (scheme, host and port) of recent and waiting notifications, with
their URLs, of which only letters are shown. An endpoint is sending (it works), paused
(it fails, and is sent nothing for a while), trying one (the next attempt decides) or
disabled. DELIVERED and TOOK are of the last attempts: how many were successful, and
how long half of them, and 95 % of them, have taken at most.
`,
			Example: `  $ caddy aip deliveries endpoints`,
		}},
	},
	{
		Path: DisableEndpoint, Method: "POST", Console: MaySwitch,
		Commands: []Command{{
			Name:  "deliveries disable",
			Args:  "<endpoint>",
			Short: "Holds all notifications to an endpoint",
			Long: `
Holds all notifications to an endpoint, which is a scheme, a host and a port, such as
https://hooks.example.com. Its notifications are kept while it is disabled.
`,
			Example: "  $ caddy aip deliveries disable https://hooks.example.com",
		}},
	},
	{
		Path: EnableEndpoint, Method: "POST", Console: MaySwitch,
		Commands: []Command{{
			Name:  "deliveries enable",
			Args:  "<endpoint>",
			Short: "Resumes all notifications to an endpoint",
			Long: `
Resumes all notifications to an endpoint, which is a scheme, a host and a port, such as
https://hooks.example.com. Its notifications are kept while it is disabled.
`,
			Example: "  $ caddy aip deliveries enable https://hooks.example.com",
		}},
	},
}
