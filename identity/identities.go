// SPDX-License-Identifier: Apache-2.0

package identity

import "fmt"

// Identities says which AIC and which AID name the same agent. The pairs are configured, and never guessed. The zero
// value has none. Its methods may be called by any number of goroutines at once, but Add.
type Identities struct {
	aids map[AIC]string
	aics map[string]AIC
}

// Add adds a pair. The AID is in its canonical form. The error says that one of the two has another name already.
func (i *Identities) Add(aic AIC, aid string) error {
	if other, ok := i.aids[aic]; ok && other != aid {
		return fmt.Errorf("%s has two AIDs, %s and %s", aic, other, aid)
	}
	if other, ok := i.aics[aid]; ok && other != aic {
		return fmt.Errorf("%s has two AICs, %s and %s", aid, other, aic)
	}
	if i.aids == nil {
		i.aids, i.aics = make(map[AIC]string), make(map[string]AIC)
	}
	i.aids[aic], i.aics[aid] = aid, aic
	return nil
}

// AID returns the AID of an AIC; empty for none.
func (i *Identities) AID(aic AIC) string { return i.aids[aic] }

// Of returns the peer whose Leader is the same, whether it has proven its AIC or its AID: a peer with an AID that has
// an AIC gets that AIC for its id. A front for AIDs makes its peers by it.
func (i *Identities) Of(p Peer) Peer {
	if aic, ok := i.aics[p.ID]; ok && p.Kind == AIDKind {
		p.Kind, p.ID = AICKind, string(aic)
	}
	return p
}

// LeaderAID returns the AID of the Leader with a name, as Peer.Leader makes it; empty where it has none.
func (i *Identities) LeaderAID(leader string) string {
	if kind, id := SplitLeader(leader); kind == AIDKind {
		return id
	}
	return i.aids[AIC(leader)]
}
