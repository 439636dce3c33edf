// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// nodeAssignees are the tasks of the connecting agents, at all processes: an agent may be connected to another process
// than the one running its turn. It implements Assignees.
type nodeAssignees struct {
	here Assignees
	set  *shard.Set
	work *ask.Service[work, worked]
}

// work is an agent's question or report, as it is handed to the process running the turn. This process is found by
// asking all for the task, and is reached by a shard it owns.
type work struct {
	Kind   workKind
	Agent  string
	ID     string
	Method string          `json:",omitempty"`
	Params json.RawMessage `json:",omitempty"`
}

type workKind string

const (
	hasTask   workKind = "has"
	sayWork   workKind = "say"
	report    workKind = "report"
	showTask  workKind = "task"
	showTasks workKind = "tasks"
)

// worked is the answer.
type worked struct {
	Has    bool
	Shard  int
	Status string
	Tasks  [][]byte
	Fault  *aun.Error // the turn's refusal; nil for none
}

// ShareAssignees returns the tasks of agents at all processes, given those in this one.
func ShareAssignees(set *shard.Set, here Assignees) Assignees {
	if set.Peers() == nil {
		return here
	}
	a := &nodeAssignees{here: here, set: set}
	a.work = ask.New(set, "aun.work", a.answer)
	a.work.Once = true
	return a
}

// answer answers another process.
func (a *nodeAssignees) answer(ctx context.Context, _ int, w work) (r worked, err error) {
	for i := range a.set.Count() {
		if a.set.Owns(i) {
			r.Shard = i
		}
	}
	params := gjson.ParseBytes(w.Params)
	switch w.Kind {
	case hasTask:
		r.Has = a.here.Has(w.Agent, w.ID)
	case sayWork:
		r.Status, err = a.here.Say(ctx, w.Agent, w.ID, w.Method, params)
	case report:
		err = a.here.Report(w.Agent, w.ID, w.Method, params)
	case showTask:
		var whole []byte
		if whole, err = a.here.Task(w.Agent, w.ID); err == nil {
			r.Tasks = [][]byte{whole}
		}
	case showTasks:
		r.Tasks = a.here.Tasks(w.Agent)
	}
	r.Fault = aun.ErrorOf(err, codec.Fault)
	return r, nil
}

// find returns a shard of the process with a task of an agent; AnyShard for none.
func (a *nodeAssignees) find(ctx context.Context, agent, id string) int {
	ctx, done := context.WithTimeout(ctx, nodePatience)
	defer done()
	for answer, err := range a.work.All(ctx, work{Kind: hasTask, Agent: agent, ID: id}) {
		if err == nil && answer.Value.Has {
			return answer.Value.Shard
		}
	}
	return shard.AnyShard
}

// at has the process with the task answer. If no process has the task, the error is this process's own.
func (a *nodeAssignees) at(ctx context.Context, w work) (r worked, err error) {
	of := shard.AnyShard
	if !a.here.Has(w.Agent, w.ID) {
		of = a.find(ctx, w.Agent, w.ID)
	}
	if of == shard.AnyShard {
		r, err = a.answer(ctx, of, w)
	} else {
		r, err = a.work.Of(ctx, of, w)
	}
	if err == nil && r.Fault != nil {
		err = r.Fault
	}
	return r, err
}

// Has implements Assignees.
func (a *nodeAssignees) Has(agent, id string) bool {
	return a.here.Has(agent, id) || a.find(context.Background(), agent, id) != shard.AnyShard
}

// Say implements Assignees.
func (a *nodeAssignees) Say(
	ctx context.Context, agent, id, method string, params gjson.Result,
) (status string, err error) {
	if a.here.Has(agent, id) {
		return a.here.Say(ctx, agent, id, method, params)
	}
	r, err := a.at(ctx, work{sayWork, agent, id, method, json.RawMessage(params.Raw)})
	return r.Status, err
}

// reportPatience is the time for which a report waits for another process.
const reportPatience = 5 * time.Second

// Report implements Assignees. If another process has the task, it waits: so the reports of an agent keep their order,
// and an agent reporting faster is slowed down.
func (a *nodeAssignees) Report(agent, id, method string, params gjson.Result) error {
	if a.here.Has(agent, id) {
		return a.here.Report(agent, id, method, params)
	}
	ctx, done := context.WithTimeout(context.Background(), reportPatience)
	defer done()
	_, err := a.at(ctx, work{report, agent, id, method, json.RawMessage(params.Raw)})
	return err
}

// Task implements Assignees.
func (a *nodeAssignees) Task(agent, id string) ([]byte, error) {
	ctx, done := context.WithTimeout(context.Background(), nodePatience)
	defer done()
	r, err := a.at(ctx, work{Kind: showTask, Agent: agent, ID: id})
	if err == nil && len(r.Tasks) != 1 {
		err = task.Errorf(task.Internal, "the task cannot be shown")
	}
	if err != nil {
		return nil, err
	}
	return r.Tasks[0], nil
}

// Tasks implements Assignees.
func (a *nodeAssignees) Tasks(agent string) (all [][]byte) {
	ctx, done := context.WithTimeout(context.Background(), nodePatience)
	defer done()
	for answer, err := range a.work.All(ctx, work{Kind: showTasks, Agent: agent}) {
		if err == nil {
			all = append(all, answer.Value.Tasks...)
		}
	}
	return all
}

// Connected implements Assignees: those of this process first.
func (a *nodeAssignees) Connected(agent string, send func(event []byte)) {
	a.here.Connected(agent, send)
	own := make(map[string]bool)
	for _, t := range a.here.Tasks(agent) {
		own[string(t)] = true
	}
	for _, t := range a.Tasks(agent) {
		if !own[string(t)] {
			send(append(append([]byte(`{"jsonrpc":"2.0","method":"event/task.updated","params":`), t...), '}'))
		}
	}
}
