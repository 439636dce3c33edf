// SPDX-License-Identifier: Apache-2.0

package adminapi

// Flags and parameters by which deliveries are selected.
var (
	ofDelivery = []Flag{
		{"status", "pending, failing, dead or disabled", false},
		{"partner", "of this Partner: its name, its AIC, or its agent's URL", false},
		{"leader", "of this Leader's tasks", false},
		{"task", "of the task with this id", false},
		{"webhook", "of the webhook with this id", false},
		{"host", "to this host", false},
		{"id", "with this webhook-id; may be repeated", true},
	}
	deliveryQuery = []string{"status", "partner", "leader", "task", "webhook", "host", "id", "after", "limit"}
)

// deliveryRoutes are the routes of deliveries and their endpoints, and their commands.
var deliveryRoutes = []Route{
	{
		Path: Deliveries, Method: "GET", Console: MayRead,
		Query: deliveryQuery,
		Commands: []Command{{
			Name:  "deliveries list",
			Args:  "[--status <status>] [--task <id>] [--host <host>] [...]",
			Short: "Lists the notifications that were not delivered",
			Long: `
Lists the notifications that were not delivered, in the order of their next attempt:
pending (not tried yet), failing (will be retried), dead (given up, kept as a dead
letter for 7 days) and disabled (held, because the webhook or its endpoint is
disabled).
`,
			Example: `  $ caddy aip deliveries list --status dead
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
		Query: deliveryQuery,
		Commands: []Command{{
			Name:  "deliveries replay",
			Args:  "[<webhook-id>...] [--task <id>] [--host <host>] [--status dead] [...]",
			Short: "Sends dead notifications again",
			Long: `
Sends notifications again that were given up, with as many attempts as new ones and
with the same webhook-ids. Select them by their ids, by the flags of list, or all
of them by --status dead.
`,
			Example: `  $ caddy aip deliveries replay msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea
  $ caddy aip deliveries replay --host hooks.example.com`,
			Flags: ofDelivery,
		}},
	},
	{Path: Webhooks, Method: "GET", Query: []string{"partner", "leader", "task"}, Console: MayRead},
	{
		Path: Endpoints, Method: "GET", Console: MayRead,
		Commands: []Command{{
			Name:  "deliveries endpoints",
			Short: "Lists the endpoints of webhooks",
			Long: `
Lists the endpoints (scheme, host and port) of recent and waiting notifications, and
the state of their circuit breakers: closed (the endpoint works), open (it fails, and
gets no requests for a while), half-open (it is being tested) or disabled.
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
