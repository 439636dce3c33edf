// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// The gateway derives names for the sessions of a Leader at its agent, so nothing is kept of them. An agent may answer
// by a name of its own, and know the session by this name alone. The name stands in the metadata of the task
// (metadata.OwnSession), and the next task of the session takes it from there: it lasts as long as a task of the
// session does. Whether the agent of a Partner has ever made such a name is stored with the secret. So a start at any
// other agent reads nothing for it.

// maxOwnSessions is the number of a session's tasks, the last one first, searched for the name made by the agent: tasks
// under way together may have missed it.
const maxOwnSessions = 16

// ownSession returns the name made by the agent of a Partner for a session of a Leader, and "" if it has made none, as
// far as is stored.
func (e *Engine) ownSession(ctx context.Context, partner, leader, session string) (string, error) {
	list := logname.ListOfSession(partner, leader, sessionKey(session))
	if name, ok := e.sessions.own.get(list); ok {
		return name, nil
	}
	name, err := e.readOwnSession(ctx, list)
	if err != nil {
		return "", StoreError(err, "the store cannot be read")
	}
	return e.sessions.own.putNew(list, name), nil // an agent may have answered meanwhile
}

// readOwnSession returns the name of a session from the last tasks in its list, or "" if they have none.
func (e *Engine) readOwnSession(ctx context.Context, list string) (string, error) {
	n := 0
	for l, err := range e.store.Listed(ctx, list, replay.ListedLog{}) {
		if n++; err != nil || n > maxOwnSessions {
			return "", err
		}
		m, err := e.namesOf(ctx, l.Log)
		if err != nil || m.OwnSession {
			return m.Ref.Session, err
		}
	}
	return "", nil
}

// known are the metadata of a task with the agent's names for it.
type known struct {
	Ref        agent.Ref `json:"ref"`
	OwnSession bool      `json:"ownSession"`
}

// namesOf reads the names of a task. They are zero for a log not in the store.
func (e *Engine) namesOf(ctx context.Context, log string) (n known, err error) {
	head, err := e.store.Head(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(head.Metadata, &n); err != nil {
		return n, damaged(err)
	}
	return n, nil
}

// keepOwnSession keeps the name made by the agent for the session of the task, for the tasks to follow. tk.mu is held.
func (tk *activeTask) keepOwnSession(ctx context.Context, name string) error {
	partner, leader, _ := logname.Split(tk.log)
	if err := tk.engine.secret.noteOwnSessions(ctx, tk.engine.store, partner); err != nil {
		return err
	}
	session := tk.meta.Session
	if m := tk.meta.Pending; m != nil {
		session = m.SessionID
	}
	tk.meta.OwnSession = true
	tk.engine.sessions.own.put(logname.ListOfSession(partner, leader, sessionKey(session)), name)
	return nil
}

// references returns the agent's own names for the tasks of the task's Leader with these ids. Tasks of others, and
// tasks not named by the agent, are left out.
func (tk *activeTask) references(ids []string) (refs []string) {
	partner, leader, _ := logname.Split(tk.log)
	for _, id := range ids {
		log := logname.New(partner, leader, id)
		n, err := tk.engine.namesOf(tk.engine.base, log)
		made := n.Ref.Task == "" || n.Ref.Task == id || tk.engine.secret.hasMade(n.Ref.Task, log)
		if err == nil && !made {
			refs = append(refs, n.Ref.Task)
		}
	}
	return refs
}
