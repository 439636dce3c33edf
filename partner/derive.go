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
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// lowerBase32 is the encoding of derived names.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// derive returns a name that is always the same for the same parts, and from which they cannot be read. Who knows the
// parts knows the name.
func derive(kind string, parts ...string) string { return deriveWith(nil, kind, parts...) }

// deriveWith returns a name that is always the same for the same secret and parts. Nobody can make it without the
// secret. That stands first, and half of the sum is left out, so that no name leads to another one.
func deriveWith(secret []byte, kind string, parts ...string) string {
	var buf [512]byte
	all := append(append(buf[:0], secret...), kind...)
	for _, part := range parts {
		all = append(append(all, logname.Separator...), part...)
	}
	sum := sha256.Sum256(all)
	name := append(append(buf[:0], kind...), '-')
	return string(lowerBase32.AppendEncode(name, sum[:15]))
}

// secretSize is the size of the secret of a store, in bytes.
const secretSize = 32

// secret is what the names have in them that tasks get for their agents, so that nobody can guess the task of another
// Leader at an agent. A store keeps its secret: a start that is repeated after a crash has the same names, by which an
// agent knows it.
type secret struct {
	making sync.Mutex             // held while it is made
	value  atomic.Pointer[[]byte] // nil before
}

// storedSecret is the metadata of the log of a secret. The names of its members are stored.
type storedSecret struct {
	Secret []byte `json:"secret"`
}

func encodeSecret(s []byte) []byte {
	data, _ := json.Marshal(storedSecret{s}) // bytes always have JSON
	return data
}

// read takes the secret from a store, if that has one.
func (s *secret) read(ctx context.Context, store replay.Store) error {
	head, err := store.Head(ctx, logname.SecretOfTasks)
	if errors.Is(err, replay.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var stored storedSecret
	if err := json.Unmarshal(head.Metadata, &stored); err != nil || len(stored.Secret) != secretSize {
		return fmt.Errorf("partner: the secret of the names of tasks is damaged: it has %d bytes", len(stored.Secret))
	}
	s.value.Store(&stored.Secret)
	return nil
}

// get returns the secret. It makes the one of a store that has none. Another process may do that at the same time.
func (s *secret) get(ctx context.Context, store replay.Store) ([]byte, error) {
	if known := s.value.Load(); known != nil {
		return *known, nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	err := replay.RetryConflict(func() error {
		if err := s.read(ctx, store); err != nil || s.value.Load() != nil {
			return err
		}
		made := make([]byte, secretSize)
		_, _ = rand.Read(made) // never fails
		create := replay.Append{Log: logname.SecretOfTasks, Metadata: encodeSecret(made), Durable: true}
		err := store.Append(ctx, create)
		if err == nil {
			s.value.Store(&made)
		}
		return err
	})
	if err != nil {
		return nil, StoreError(err, "the store cannot be written")
	}
	return *s.value.Load(), nil
}

// isDerived reports whether the gateway has made the name of a task for the agent, of its log and more. Before names
// had a secret in them, they were made of the rest alone.
func (tk *activeTask) isDerived(more ...string) bool {
	parts, name := append([]string{tk.log}, more...), tk.meta.Ref.Task
	known := tk.engine.secret.value.Load()
	return name == derive("task", parts...) || known != nil && name == deriveWith(*known, "task", parts...)
}
