// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// Drain is the route by which new tasks are refused (POST), accepted again (DELETE), and by which what is left is seen
// (GET). One of several gateways hands its shards over instead, as DrainNode has it do. Each is answered by a
// DrainState.
const Drain = "/aip/drain"

// DrainState says whether the gateway is drained, and how much work is left.
type DrainState struct {
	Draining   bool      `json:"draining"`
	HandsOver  bool      `json:"hands_over,omitempty"` // one of several: the others get its shards, and take new tasks
	Since      time.Time `json:"since,omitzero"`       // when new tasks were first refused
	Running    int       `json:"running"`              // tasks that an agent works on
	Unfinished int64     `json:"unfinished"`           // tasks that have not ended, the running ones included
}

// drainRoutes are the routes of draining, and their commands.
var drainRoutes = []Route{
	{
		Path: Drain, Method: "GET, POST, DELETE",
		Commands: []Command{{
			Name:  "drain",
			Args:  "[--wait [--timeout <time>]] [--end]",
			Short: "Has a running gateway refuse new tasks, before it is stopped",
			Long: `
Has a running gateway refuse new tasks, before it is stopped, for example for an upgrade.
The tasks that it has continue, and take all commands. With --wait it returns when no
agent works on a task any more; what waits for its Leader then, continues after the
restart. The gateway refuses new tasks until --end, or until it is stopped. One of
several gateways hands its shards over to the others, which start the new tasks; it
refuses tasks only if there is no other one.
`,
			Example: `  $ caddy aip drain --wait --timeout 10m && caddy stop
  $ caddy aip drain --end`,
		}},
	},
}
