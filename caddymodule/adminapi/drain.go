// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// Drain is the route by which new tasks are refused (POST), accepted again (DELETE), and by which what is left is seen
// (GET). Each is answered by a DrainState.
const Drain = "/aip/drain"

// DrainState says whether new tasks are refused, and how much work is left.
type DrainState struct {
	Draining   bool      `json:"draining"`
	Since      time.Time `json:"since,omitzero"` // when new tasks were first refused
	Running    int       `json:"running"`        // tasks that an agent works on
	Unfinished int64     `json:"unfinished"`     // tasks that have not ended, the running ones included
}
