// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// maxID is the largest length of an agent's name for a task, in bytes.
const maxID = 256

// naming is the task's name in the answer to one request. In v0.1 the client names it, but many agents written by hand
// make a name of their own, and know the task by no other.
type naming struct {
	query translate.Query
	name  string // in the answer; empty until it has one
}

// read reads the name in an answer, or in an event of one. The first name counts: ref is set if the agent has made it.
// An agent may only do so in the answer to a turn. ours is false of an event with another name than those before.
func (n *naming) read(id gjson.Result) (ref *agent.Ref, ours bool, err error) {
	switch {
	case id.Str == "" || id.Str == n.name:
		return nil, true, nil
	case n.name != "":
		return nil, false, nil
	case !n.query.Turn:
		err = wire.About(&n.query, id.Str)
	case len(id.Str) > maxID:
		err = wire.Refuse("the agent's answer has an id of more than %d bytes", maxID)
	case id.Str != n.query.Task:
		ref = &agent.Ref{Task: id.Str, Session: n.query.Session}
	}
	if err != nil {
		return nil, false, err
	}
	n.name = id.Str
	return ref, true, nil
}

// report adds the names of an answer to its report. The session's name is that of the request, unless the answer to a
// turn says another one.
func (n *naming) report(rep *agent.Report, ref *agent.Ref, session gjson.Result) {
	if rep.Ref = ref; !n.query.Turn || session.Str == "" || session.Str == n.query.Session || len(session.Str) > maxID {
		return
	}
	reply.Name(rep, cmp.Or(n.name, n.query.Task), session.Str, n.query.Session)
}
