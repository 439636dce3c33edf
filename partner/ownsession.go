// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// The sessions of a Leader have names for its agent that the gateway derives, so that nothing is kept of them. An agent
// may answer by a name of its own, by which alone it knows the session. That stands in the metadata of the task
// (metadata.OwnSession), and the next task of the session takes it from there: it lasts as long as a task of the
// session does. Whether the agent of a Partner has ever made such a name is stored with the secret, so that a start at
// any other agent reads nothing for it.

// maxOwnSessions is how many tasks of a session are looked at, the last one first, for the name that the agent has
// made: tasks that were under way together may have missed it.
const maxOwnSessions = 16

// ownSession returns the name that the agent of a Partner has made for a session of a Leader, and "" if it has made
// none, as far as is stored.
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

// readOwnSession returns what the last tasks in the list of a session say of its name.
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

// known are the metadata of a task that say what the agent calls it.
type known struct {
	Ref        agent.Ref `json:"ref"`
	OwnSession bool      `json:"ownSession"`
}

// namesOf reads the names of a task. They are zero for a log that there is not.
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

// keepOwnSession keeps the name that the agent has made for the session of the task, for the tasks that follow. tk.mu
// is held.
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

// references returns the names that the agent has given the tasks of the task's Leader with these ids. Tasks that the
// Leader does not have, and those that the agent has not named, are left out.
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
