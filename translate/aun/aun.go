// SPDX-License-Identifier: Apache-2.0

// Package aun translates between the canon and the task.* namespace of AUN (services specification, "task.*"): its
// task objects, inputs, artifacts and events.
package aun

import (
	"github.com/aip-gateway/aip-gateway/task"
)

// Name is the name of the dialect in a configuration.
const Name = "aun"

// The methods of task.* called by an owner.
const (
	Create      = "task.create"
	Get         = "task.get"
	SendInput   = "task.send_input"
	Cancel      = "task.cancel"
	List        = "task.list"
	Subscribe   = "task.subscribe"
	Unsubscribe = "task.unsubscribe"
	Delegate    = "task.delegate"
	Children    = "task.children"
)

// The methods of task.* called by an assignee.
const (
	Accept   = "task.accept"
	Reject   = "task.reject"
	Complete = "task.complete"
	Fail     = "task.fail"
)

// The events of a task: their names as task.subscribe has them, and as the methods of notifications after EventPrefix.
const (
	Updated   = "updated"
	Completed = "completed"
	Failed    = "failed"
	Artifact  = "artifact"
	Delegated = "delegated"

	EventPrefix = "event/task."
)

// Events returns the names of all events of a task.
func Events() []string { return []string{Updated, Completed, Failed, Artifact, Delegated} }

// MaxFrame is the largest frame of AUN, in bytes.
const MaxFrame = 1_000_000

// StateName returns the status of AUN for a state. A task awaiting completion is input_required with confirm, and
// completed without. None is the state of a task whose start is pending.
func StateName(s task.State, confirm bool) string {
	switch s {
	case task.None, task.Accepted:
		return "submitted"
	case task.AwaitingInput:
		return "input_required"
	case task.AwaitingCompletion:
		if confirm {
			return "input_required"
		}
		return "completed"
	}
	return string(s) // the same in both
}

// State returns the state for a status of AUN. An assignee that has completed a task leaves it to the Leader to accept
// the result.
func State(status string) (s task.State, ok bool) {
	switch status {
	case "submitted":
		return task.Accepted, true
	case "working":
		return task.Working, true
	case "input_required":
		return task.AwaitingInput, true
	case "completed":
		return task.AwaitingCompletion, true
	case "canceled":
		return task.Canceled, true
	case "failed":
		return task.Failed, true
	case "rejected":
		return task.Rejected, true
	}
	return task.None, false
}
