// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// lowerBase32 is the encoding of derived names.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// derive returns a name, always the same for the same parts. The parts cannot be read from it, but knowledge of the
// parts gives the name.
func derive(kind string, parts ...string) string { return deriveWith(nil, kind, parts...) }

// deriveWith returns a name, always the same for the same secret and parts. It cannot be made without the secret.
func deriveWith(secret []byte, kind string, parts ...string) string {
	sum := digest(secret, kind, parts)
	var buf [64]byte
	name := append(append(buf[:0], kind...), '-')
	return string(lowerBase32.AppendEncode(name, sum[:15]))
}

// deriveUUID is deriveWith for a UUID. The UUID has the form of version 4, though it is derived: agents check ids by
// patterns without versions above 5.
func deriveUUID(secret []byte, kind string, parts ...string) string {
	sum := digest(secret, kind, parts)
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

// digest returns a sum. A name takes half of it: the secret stands first, so a whole sum would lead to the sums of more
// parts.
func digest(secret []byte, kind string, parts []string) [sha256.Size]byte {
	var buf [512]byte
	all := append(append(buf[:0], secret...), kind...)
	for _, part := range parts {
		all = append(append(all, logname.Separator...), part...)
	}
	return sha256.Sum256(all)
}

// secretSize is the size of the secret of a store, in bytes.
const secretSize = 32

// naming makes the names of the tasks of a store, and of their sessions, for their agents.
type naming struct {
	secret []byte // in the names, so that no Leader can guess the task of another one at an agent

	// The sessions named by callers have UUIDs as names. In a store with tasks of an older build they do not: agents know
	// the conversations by their earlier names.
	uuidSessions bool

	// The Partners with agents making names of sessions of their own. For all others such names need not be looked for.
	ownSessions []string
}

// session returns the name of a session named by the Leader. It has no secret in it, so that agents know conversations
// again if a store is lost.
func (n naming) session(partner, leader, session string) string {
	if n.uuidSessions {
		return deriveUUID(nil, "session", partner, leader, session)
	}
	return derive("session", partner, leader, session)
}

// secret is the naming of a store, kept in the store: a start repeated after a crash has the same names, and an agent
// knows it by them.
type secret struct {
	making sync.Mutex             // held while it is made
	value  atomic.Pointer[naming] // nil before
}

// storedSecret is the metadata of the log of a secret. The names of its members are stored.
type storedSecret struct {
	Secret       []byte   `json:"secret"`
	UUIDSessions bool     `json:"uuidSessions,omitzero"`
	OwnSessions  []string `json:"ownSessions,omitempty"`
}

func encodeSecret(n naming) []byte {
	data, _ := json.Marshal(storedSecret{n.secret, n.uuidSessions, n.ownSessions}) // bytes always have JSON
	return data
}

// read takes the secret from a store, if the store has one. It returns the revision of its log.
func (s *secret) read(ctx context.Context, store replay.Store) (revision uint64, err error) {
	head, err := store.Head(ctx, logname.SecretOfTasks)
	if errors.Is(err, replay.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var stored storedSecret
	if err := json.Unmarshal(head.Metadata, &stored); err != nil || len(stored.Secret) != secretSize {
		return 0, fmt.Errorf("partner: the secret of the names of tasks is damaged: it has %d bytes", len(stored.Secret))
	}
	s.value.Store(&naming{stored.Secret, stored.UUIDSessions, stored.OwnSessions})
	return head.Revision, nil
}

// get returns the naming. It makes one for a store without. Another process may do the same at this time.
func (s *secret) get(ctx context.Context, store replay.Store) (naming, error) {
	if known := s.value.Load(); known != nil {
		return *known, nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	err := replay.RetryConflict(func() error {
		if _, err := s.read(ctx, store); err != nil || s.value.Load() != nil {
			return err
		}
		made := naming{secret: make([]byte, secretSize), uuidSessions: true}
		_, _ = rand.Read(made.secret) // never fails
		for _, err := range store.List(ctx, string(logname.Task), "") {
			if err != nil {
				return err
			}
			made.uuidSessions = false
			break
		}
		create := replay.Append{Log: logname.SecretOfTasks, Metadata: encodeSecret(made), Durable: true}
		err := store.Append(ctx, create)
		if err == nil {
			s.value.Store(&made)
		}
		return err
	})
	if err != nil {
		return naming{}, StoreError(err, "the store cannot be written")
	}
	return *s.value.Load(), nil
}

// noteOwnSessions stores that the agent of a Partner makes its own names of sessions. The naming is known.
func (s *secret) noteOwnSessions(ctx context.Context, store replay.Store, partner string) error {
	if slices.Contains(s.value.Load().ownSessions, partner) {
		return nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	return replay.RetryConflict(func() error {
		revision, err := s.read(ctx, store)
		now := *s.value.Load()
		if err != nil || slices.Contains(now.ownSessions, partner) {
			return err
		}
		now.ownSessions = append(slices.Clone(now.ownSessions), partner)
		err = store.Append(ctx, replay.Append{
			Log: logname.SecretOfTasks, Expect: revision, Metadata: encodeSecret(now), Durable: true,
		})
		if err == nil {
			s.value.Store(&now)
		}
		return err
	})
}

// isDerived reports whether the gateway has made the name of the task for the agent; see secret.hasMade. tk.mu is held.
func (tk *activeTask) isDerived(more ...string) bool {
	return tk.engine.secret.hasMade(tk.meta.Ref.Task, tk.log, more...)
}

// hasMade reports whether the gateway has made the name of a task for the agent, of its log and more. Older builds made
// other names than UUIDs, and the first ones had no secret in them.
func (s *secret) hasMade(name, log string, more ...string) bool {
	parts := append([]string{log}, more...)
	if name == derive("task", parts...) {
		return true
	}
	known := s.value.Load()
	return known != nil &&
		(name == deriveUUID(known.secret, "task", parts...) || name == deriveWith(known.secret, "task", parts...))
}
