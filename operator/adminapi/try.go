// SPDX-License-Identifier: Apache-2.0

package adminapi

import "github.com/aip-gateway/aip-gateway/task"

// TryPartner is the route by which an operator tries a Partner as a Leader of its own, "operator:console".
const TryPartner = "/aip/try" // POST Try: Task

// Try is a command of the operator as a Leader.
type Try struct {
	Partner string       `json:"partner"` // as in TaskName
	Command task.Command `json:"command"` // start, continue, complete or cancel
	Task    string       `json:"task,omitempty"`
	Text    string       `json:"text,omitempty"` // of a start or continue
}

// tryRoutes are the routes of the console's trial calls, and their commands.
var tryRoutes = []Route{
	{Path: TryPartner, Method: "POST", Console: MayTry},
}
