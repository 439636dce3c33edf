// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// A task is in four lists of the store: in the list of its Leader and its state, in the list of its session, for
// callers without an identity in the list of its id, and for operators in the list of its state. So the cost of a page
// of tasks is the cost of its own tasks, by whatever they are selected.

// rank is the place of a task in the lists in order of time.
type rank struct {
	state   string // see stateKey; empty while the task is in none of these lists but the operators' one
	at      time.Time
	session string
}

// The keys of states outside of AIP. They are stored.
const (
	tentativeKey = "tentative" // metadata.Tentative, while the start is pending
	pendingKey   = "pending"   // any other pending start; for operators only
	selfResuming = "*"         // behind AwaitingInput: the agent may resume by itself
)

// listsOfAll are the names of the lists for operators, by the keys of their states.
var listsOfAll = func() map[string]string {
	names := make(map[string]string)
	for _, key := range (&TaskFilter{}).keys() {
		names[key] = logname.ListOfAll(key)
	}
	return names
}()

// stateKey returns the form of a state in the names of lists and in labels.
func stateKey(s task.State, resumes bool) string {
	if resumes && s == task.AwaitingInput {
		return string(s) + selfResuming
	}
	return string(s)
}

// rank returns the place of a task with this metadata.
func (n *metadata) rank() rank {
	switch {
	case n.Pending == nil && n.State != task.None:
		return rank{stateKey(n.State, n.SelfResuming), n.Changed, n.Session}
	case n.Pending != nil && n.Tentative:
		return rank{tentativeKey, n.PendingAt, n.Pending.SessionID}
	case n.Pending != nil:
		return rank{at: n.PendingAt}
	}
	return rank{}
}

// sessionKey returns the form of a session in the name of a list.
func sessionKey(session string) string { return derive("session", session) }

// listings are the lists of a task, and the rank they were made of.
type listings struct {
	of   rank
	list []replay.Listing // never changed: the store keeps it
}

// encodeListings returns the lists of the task. Most writes do not change them. tk.mu is held.
func (tk *activeTask) encodeListings() []replay.Listing {
	if r := tk.meta.rank(); tk.listings.list == nil || tk.listings.of != r {
		ofID := ""
		if tk.listings.list != nil {
			ofID = tk.listings.list[0].List // it never changes
		}
		tk.listings = listings{r, listingsOf(tk.log, r, ofID)}
	}
	return tk.listings.list
}

// listingsOf returns the lists of the task with this log and rank. The first one is the list of its id; ofID is the
// name of this list, if it is known.
func listingsOf(log string, r rank, ofID string) []replay.Listing {
	partner, leader, id := logname.Split(log)
	most := 2
	if r.state != "" {
		most = 4
	}
	all := make([]replay.Listing, 1, most)
	if all[0].List = ofID; ofID == "" {
		all[0].List = logname.ListOfID(partner, id)
	}
	if !r.at.IsZero() {
		all = append(all, replay.Listing{List: listsOfAll[cmp.Or(r.state, pendingKey)], At: r.at})
	}
	if r.state != "" {
		all = append(all, replay.Listing{List: logname.ListOfState(partner, leader, r.state), At: r.at})
	}
	if r.state != "" && r.session != "" {
		list := logname.ListOfSession(partner, leader, sessionKey(r.session))
		all = append(all, replay.Listing{List: list, At: r.at, Label: r.state})
	}
	return all
}

// stateIn returns the state of a task by its lists, and whether its agent may resume by itself. It is None while the
// task is in no list of a state.
func stateIn(lists []replay.Listing) (s task.State, resumes bool) {
	for i := range lists {
		if key, ok := logname.StateOfList(lists[i].List); ok && key != tentativeKey {
			key, resumes = strings.CutSuffix(key, selfResuming)
			return task.State(key), resumes
		}
	}
	return task.None, false
}

// lists are an engine's means to read the lists of the store.
type lists struct{ turns *keylock.Map[turn] }

// turn is held by the call of a Leader reading a list at present. Only its holder has put something into it.
type turn struct{ held chan struct{} }

func newLists() *lists {
	return &lists{turns: keylock.New(func(*keylock.Entry[turn]) *turn { return &turn{make(chan struct{}, 1)} })}
}

// inTurn calls f. The calls for one Leader, with all that count for it, wait for one another, in the order of their
// arrival. So their cost is not taken from the calls of others. f must not wait for anything but the store.
func (ls *lists) inTurn(ctx context.Context, leader string, f func() error) error {
	key := limit.Key(leader)
	entry := ls.turns.Acquire(key)
	defer entry.Release()
	t := entry.Value
	select {
	case t.held <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.held }()
	return f()
}
