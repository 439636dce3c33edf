// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// threadName is a client's name for one of its threads.
type threadName struct {
	Agent string // the other side; empty if the client has not named it
	Name  string // or its task
}

// TaskOf returns the last task of a client's thread with an agent, or, if agent is empty, with the only one having such
// a thread. It is empty if there is none.
func (m *Mailbox) TaskOf(ctx context.Context, c Caller, agent, thread string) (task string, err error) {
	if agent != "" {
		aid, err := aun.ParseAID(agent)
		if err != nil {
			return "", invalid("to: %v", err)
		}
		agent = string(aid)
	}
	back, err := m.answerAnywhere(ctx, c.AID, c, handed{Thread: &threadName{agent, thread}})
	return back.Task, err
}

// taskHere is TaskOf in the process with the inbox.
func (m *Mailbox) taskHere(ctx context.Context, c Caller, t threadName) (task string, err error) {
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		agent := ""
		for _, conv := range slices.Backward(b.meta.Conversations) {
			switch {
			case conv.Thread != t.Name && conv.Task != t.Name, t.Agent != "" && conv.Agent != t.Agent:
			case agent == "":
				agent = conv.Agent
			case conv.Agent != agent:
				return aun.Errorf(codes.InvalidParams, "you have the thread %q with %s and with %s; name one of them in to",
					t.Name, agent, conv.Agent)
			}
		}
		if conv := b.conversationWith(agent, t.Name); conv != nil {
			task = conv.Task
		}
		return nil
	})
	return task, err
}
