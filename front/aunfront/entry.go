// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"slices"

	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// entry is the record of a task. The names of the members are stored.
type entry struct {
	Log          string   `json:"log"`                // of the task
	Assignee     string   `json:"assignee,omitempty"` // AID
	Owner        string   `json:"owner,omitempty"`    // AID
	Participants []string `json:"participants,omitempty"`
	Visibility   string   `json:"visibility,omitempty"`
	Parent       string   `json:"parent,omitempty"`
	Depth        int      `json:"depth,omitempty"` // number of tasks above
	Children     []string `json:"children,omitempty"`
	// Creator is the creating device, which gets the task's events from the first one on.
	Creator string `json:"creator,omitempty"`

	revision uint64 // of its log; 0 while there is none
}

// role is what a client may do with a task.
type role uint8

// The roles.
const (
	stranger    role = iota
	reader           // of a public task
	participant      // of a shared task
	assignee
	owner
)

// role returns the role of an AID.
func (e *entry) role(aid string) role {
	switch {
	case aid == e.Owner:
		return owner
	case aid == e.Assignee:
		return assignee
	case e.Visibility != codec.Private && slices.Contains(e.Participants, aid):
		return participant
	case e.Visibility == codec.Public:
		return reader
	}
	return stranger
}

// relation returns the codec's view of an entry.
func (e *entry) relation() codec.Relation {
	return codec.Relation{Owner: e.Owner, Assignee: e.Assignee, Participants: e.Participants, Visibility: e.Visibility,
		Parent: e.Parent, Children: e.Children}
}
