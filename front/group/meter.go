// SPDX-License-Identifier: Apache-2.0

package group

import (
	"maps"
	"slices"
)

// Counts are the memberships of one Partner, and their traffic since the process began. Ended ones are counted, too.
type Counts struct {
	ByState map[State]int
	Traffic
	Mail Mail
}

// Mail counts the messages of the inbox of a Partner since the process began.
type Mail struct {
	Open      bool // the inbox is read by this process, as soon as it can be
	Connected bool // it can be
	Messages  map[Result]int
}

// Result is the outcome of a message of an inbox.
type Result string

// The results.
const (
	Accepted   Result = "accepted"   // the Partner has joined the group
	Refused    Result = "refused"    // it has not, and the gateway has written the reason to the Leader
	Unproven   Result = "unproven"   // by the broker's word, the sender is not the named Leader
	Unreadable Result = "unreadable" // it is malformed, or too large
	Ignored    Result = "ignored"    // it is no invitation
)

// Results lists the results of a message of an inbox.
func Results() []Result { return []Result{Accepted, Refused, Unproven, Unreadable, Ignored} }

// inboxCount returns the counts of the inbox of a Partner. The caller holds e.mu.
func (e *Engine) inboxCount(partner string) *Mail {
	if e.mail[partner] == nil {
		e.mail[partner] = &Mail{Messages: make(map[Result]int)}
	}
	return e.mail[partner]
}

// States lists the states of a membership.
func States() []State {
	return []State{Joining, Joined, Reconnecting, Waiting, Unregistered, Leaving}
}

// Counts returns the counts of every Partner with a registration or a membership, past or present, by its name.
func (e *Engine) Counts() map[string]*Counts {
	all := make(map[string]*Counts)
	of := func(name string) *Counts {
		if all[name] == nil {
			all[name] = &Counts{ByState: make(map[State]int)}
		}
		return all[name]
	}
	e.mu.Lock()
	for name := range e.partners {
		of(name)
	}
	for name, past := range e.past {
		of(name).Traffic = past
	}
	for name, mail := range e.mail {
		of(name).Mail.add(mail)
	}
	members := slices.Collect(maps.Values(e.memberships)) // none of them is in past
	e.mu.Unlock()
	for _, m := range members {
		of(m.partner).ByState[m.currentState()]++
		of(m.partner).add(m.tasks.traffic())
	}
	return all
}

// Add adds the counts of another Partner. A zero Counts is empty.
func (c *Counts) Add(o *Counts) {
	if c.ByState == nil {
		c.ByState = make(map[State]int)
	}
	for state, n := range o.ByState {
		c.ByState[state] += n
	}
	c.Traffic.add(o.Traffic)
	c.Mail.add(&o.Mail)
}

func (m *Mail) add(o *Mail) {
	m.Open, m.Connected = m.Open || o.Open, m.Connected || o.Connected
	if m.Messages == nil && o.Messages != nil {
		m.Messages = make(map[Result]int)
	}
	for result, n := range o.Messages {
		m.Messages[result] += n
	}
}

func (m *membership) currentState() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// add adds the traffic of another membership.
func (t *Traffic) add(o Traffic) {
	t.Unconfirmed += o.Unconfirmed
	t.Lag += o.Lag
	t.Tasks += o.Tasks
	t.Received += o.Received
	t.Executed += o.Executed
	t.Ignored += o.Ignored
	t.Poison += o.Poison
	t.Published += o.Published
	t.Confirmed += o.Confirmed
}
