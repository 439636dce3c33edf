// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// Streams is the route of the open streams of all callers.
const Streams = "/aip/streams" // GET: StreamPage

// Stream is an open stream.
type Stream struct {
	TaskName
	Of
	OfAgent

	Number    uint64    `json:"number"`            // of the stream, since the process began
	User      string    `json:"user_id,omitempty"` // the caller's AIC or AID, as it is proven
	Address   string    `json:"address,omitempty"` // of the caller
	Transport string    `json:"transport"`         // such as HTTP/2.0
	Dialect   string    `json:"dialect"`
	Command   string    `json:"command"` // that the stream answers
	Since     time.Time `json:"since"`
	Events    uint64    `json:"events"`           // that were sent
	Last      uint64    `json:"last"`             // number of the last one, or of the one after which the stream begins
	Behind    *uint64   `json:"behind,omitempty"` // events that are still to be sent; missing if the task cannot be read
}

// StreamPage is a page of open streams.
type StreamPage struct {
	Partial

	Streams []Stream `json:"streams"`
	Next    Cursor   `json:"next,omitempty"` // the parameter after of the next page; missing on the last one
}

// streamRoutes are the routes of streams, and their commands.
var streamRoutes = []Route{
	{
		Path: Streams, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "after", "limit"},
		Commands: []Command{{
			Name:  "streams",
			Args:  "[--task <id>] [--leader <aic>] [--partner <name>]",
			Short: "Lists the open streams of a running gateway",
			Long: `
Lists the open streams of a running gateway, the oldest first: whose task each sends,
since when, how many events it has sent, and how many are still to be sent. A stream
that is far behind has a caller that reads slowly. It uses Caddy's admin API.
`,
			Example: `  $ caddy aip streams
  $ caddy aip streams --task task-1 --json`,
			Flags: append([]Flag{{"task", "of the task with this id", false}}, ofTask...),
		}},
	},
}
