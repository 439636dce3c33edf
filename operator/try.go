// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/dialect"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// tester is the peer of commands by which an operator tries a Partner.
var tester = identity.Peer{Proof: identity.ByHost, Kind: identity.OperatorKind, ID: "console", Login: true}

// tryPartner executes a command of the operator as a Leader. It is counted as those of other Leaders are, and answered
// at once.
func tryPartner(a *Admin, r *http.Request) (any, error) {
	var try adminapi.Try
	const form = `{"partner": "…", "command": "…", "task": "…", "text": "…"}; a start has no task`
	if err := readBody(r, &try, form, &try.Partner); err != nil {
		return nil, err
	}
	if (try.Task == "") != (try.Command == task.Start) {
		return nil, errBody(form)
	}
	m := task.Message{ID: rand.Text(), Command: try.Command, SenderRole: task.Leader, TaskID: try.Task}
	switch try.Command {
	case task.Start:
		m.TaskID, m.SessionID = "console-"+rand.Text(), "console-"+rand.Text()
		m.DataItems = []task.DataItem{task.Text(try.Text)}
	case task.Continue:
		m.DataItems = []task.DataItem{task.Text(try.Text)}
	case task.Complete, task.Cancel:
	default:
		return nil, task.Errorf(task.InvalidParams, "command is %q, but must be start, continue, complete or cancel",
			try.Command)
	}
	try.Partner = a.partnerOf(try.Partner)
	c := a.InForce()
	var p *node.Partner
	if c != nil {
		p = c.Partners().Named(try.Partner)
	}
	if p == nil {
		return nil, errUnknownPartner(try.Partner)
	}
	if most := p.Gateway.MaxBody(); len(try.Text) > most {
		return nil, task.Errorf(task.InvalidParams,
			"text has %d bytes, but must have no more than the %d that limits body of the Partner allows", len(try.Text), most)
	}
	c.Enter()
	defer c.Leave()
	var q gateway.Request
	defer q.Release()
	if err := p.Gateway.Hold(r.Context(), tester, &q, len(try.Text)); err != nil {
		return nil, err
	}
	call := gateway.Call{Dialect: aip.Server().Name(), Call: translate.Call{
		Call:   task.Call{Message: m, Terms: task.Terms{Response: task.NoWait}},
		Policy: dialect.Policy{Strict: true, Followed: true},
	}}
	if _, err := p.Gateway.Do(r.Context(), tester, &q, &call); err != nil {
		return nil, err
	}
	name := adminapi.TaskName{Partner: try.Partner, Leader: tester.Leader(), Task: m.TaskID}
	query := url.Values{"partner": {name.Partner}, "leader": {name.Leader}, "task": {name.Task}}
	listed, err := a.asked.Of(r.Context(), a.Tasks.ShardOf(name.Partner, name.Leader),
		question{Path: adminapi.Tasks, Method: http.MethodGet, Query: query.Encode()})
	var page adminapi.TaskPage
	if err == nil {
		err = json.Unmarshal(listed.Body, &page)
	}
	if err != nil || len(page.Tasks) == 0 {
		return adminapi.Task{TaskName: name}, err
	}
	return page.Tasks[0], nil
}
