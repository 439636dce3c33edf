// SPDX-License-Identifier: Apache-2.0

package identity

import "fmt"

// Identities joins the ids of the same agent: an AIC, an AID, the bearer of an issuer's tokens, the holder of a key.
// The sets are configured, and never guessed. The zero value has none. Its methods may be called by any number of
// goroutines at once, but Add and Join.
type Identities struct {
	aids    map[string]string // by the name of the Leader
	leaders map[string]string // the name of the Leader, by another one of its ids
}

// Add adds an AIC and an AID. The AID is in its canonical form. After an error, one of the two has another name
// already.
func (i *Identities) Add(aic AIC, aid string) error {
	return i.Join(string(aic), Peer{Kind: AIDKind, ID: aid}.Leader())
}

// Join makes other ids those of a Leader. All are names of Leaders, as Peer.Leader makes them. An AIC can only be the
// Leader, so its tasks stay its own.
func (i *Identities) Join(leader string, others ...string) error {
	if is, ok := i.leaders[leader]; ok {
		return fmt.Errorf("%s is one with %s already; write one line for all", leader, is)
	}
	for _, other := range others {
		kind, id := SplitLeader(other)
		switch is, known := i.leaders[other]; {
		case kind == AICKind:
			return fmt.Errorf("%s is an AIC, and must come first", other)
		case other == leader || i.heads(other):
			return fmt.Errorf("%s cannot be one with %s: it stands for others itself", other, leader)
		case known && is != leader:
			return fmt.Errorf("%s is in two lines, those of %s and %s", id, is, leader)
		case kind == AIDKind && i.LeaderAID(leader) != "" && i.LeaderAID(leader) != id:
			return fmt.Errorf("%s has two AIDs, %s and %s", leader, i.LeaderAID(leader), id)
		}
		if i.leaders == nil {
			i.aids, i.leaders = make(map[string]string), make(map[string]string)
		}
		if i.leaders[other] = leader; kind == AIDKind {
			i.aids[leader] = id
		}
	}
	return nil
}

// heads reports whether a name stands for other ids.
func (i *Identities) heads(leader string) bool {
	for _, is := range i.leaders {
		if is == leader {
			return true
		}
	}
	return false
}

// AID returns the AID of an AIC; empty for none.
func (i *Identities) AID(aic AIC) string { return i.aids[string(aic)] }

// Names returns all names of a Leader: its own, and those joined to it.
func (i *Identities) Names(leader string) []string {
	names := []string{leader}
	for other, is := range i.leaders {
		if is == leader {
			names = append(names, other)
		}
	}
	return names
}

// Of returns the peer with the same Leader, whichever of its ids it has proven.
func (i *Identities) Of(p Peer) Peer {
	if len(i.leaders) == 0 || p.Kind == AICKind || p.Kind == OperatorKind || !p.Verified() {
		return p
	}
	if leader, ok := i.leaders[p.Leader()]; ok {
		p.Kind, p.ID = SplitLeader(leader)
	}
	return p
}

// LeaderAID returns the AID of the Leader with a name, as Peer.Leader makes it; empty if it has none.
func (i *Identities) LeaderAID(leader string) string {
	if kind, id := SplitLeader(leader); kind == AIDKind {
		return id
	}
	return i.aids[leader]
}
