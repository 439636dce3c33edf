// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
)

var ofTasks metric.Set

// The metrics of tasks.
var (
	metricUnfinished = ofTasks.Gauge("tasks_unfinished", "Unfinished tasks in the store.")
	metricTasks      = ofTasks.Gauge("tasks", "Unfinished tasks by state; pending before the agent has answered.", "state")
	metricDraining   = ofTasks.Gauge("draining", "Whether new tasks are refused until the operator ends that: 1 or 0.")
)

// tasks adds the unfinished tasks of all agents.
func (s samples) tasks(all *gateway.Tasks) {
	s.Flag(metricDraining, !all.Process().Draining().IsZero())
	e := all.Engines()
	s.Add(metricUnfinished, float64(e.Unfinished()))
	s.Add(metricTasks, float64(e.InState(task.None)), "pending")
	for _, state := range task.States() {
		if !state.Terminal() {
			s.Add(metricTasks, float64(e.InState(state)), string(state))
		}
	}
}
