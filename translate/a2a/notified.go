// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Where completion is auto, two states of AIP are the same word of A2A, and a webhook is told of it once. In 0.3 and
// 1.0 that is when the task is completed, which follows at once; in v0.1 when its agent has finished, because the task
// stays open for its caller.

// NotifiedStates implements translate.Selective.
func (s legacyServer) NotifiedStates() []task.State { return allBut(task.Completed, s.confirm) }

// NotifiedStates implements translate.Selective.
func (s v03Server) NotifiedStates() []task.State { return allBut(task.AwaitingCompletion, s.confirm) }

// NotifiedStates implements translate.Selective.
func (s v1Server) NotifiedStates() []task.State { return allBut(task.AwaitingCompletion, s.confirm) }

// allBut returns all states but one, or nil for all of them where they are all different words.
func allBut(one task.State, confirm bool) []task.State {
	if confirm {
		return nil
	}
	return slices.DeleteFunc(task.States(), func(s task.State) bool { return s == one })
}

// Interface guards.
var (
	_ translate.Selective = legacyServer{}
	_ translate.Selective = v03Server{}
	_ translate.Selective = v1Server{}
	_ translate.Selective = v1RESTServer{}
)
