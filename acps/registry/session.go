// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Storage keeps state beyond the process. The gateways of a fleet share it. Its content is secret.
type Storage interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
	// Load returns fs.ErrNotExist for a missing key.
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
}

// Login is the login of a user of a registry: a Password, or a Device.
type Login interface {
	// name tells apart the logins with kept sessions.
	name() string
	// renew gets a new token in place of a session's, and changes the session. With ask, a person is there to log in. kept
	// stores the session as it is.
	renew(ctx context.Context, s *session, ask bool, kept func() error) error
}

// session is the kept form of the session of a user. A registry may know one session a user, so each login ends the one
// before: the session is shared by all acting for the user, and kept until the registry refuses it.
type session struct {
	Token   string    `json:"token,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Refresh string    `json:"refresh,omitempty"` // the token for a Device to get the next one
	Asked   *asked    `json:"asked,omitempty"`   // a person is asked to log in
}

// early is the time before its end from which a token is no longer used.
const early = 30 * time.Second

// usable reports whether the token may still be accepted, given a token refused by the registry.
func (s *session) usable(refused string, now time.Time) bool {
	return s.Token != "" && s.Token != refused && now.Before(s.Expires.Add(-early))
}

// Account acts for one user of a registry.
type Account struct {
	client  *Client
	login   Login
	storage Storage
	folder  string // of the storage
	key     string // of the session in it
}

// NewAccount returns the account of a user at a registry.
func NewAccount(c *Client, login Login, s Storage) *Account {
	folder := "aip/registry/" + digest(c.base)
	return &Account{client: c, login: login, storage: s, folder: folder,
		key: folder + "/session-" + digest(login.name()) + ".json"}
}

// Client returns the client of the registry.
func (a *Account) Client() *Client { return a.client }

// digest returns a name for a file.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// locked calls f while no other gateway has the lock of a key.
func locked(ctx context.Context, s Storage, key string, f func() error) error {
	if err := s.Lock(ctx, key); err != nil {
		return fmt.Errorf("the storage is not available: %w", err)
	}
	defer func() { _ = s.Unlock(context.WithoutCancel(ctx), key) }() // a lock left behind ends by itself
	return f()
}

// load reads the value kept under a key; nothing if there is none, or if a crash has cut it off.
func load[T any](ctx context.Context, s Storage, key string) (kept T, err error) {
	value, err := s.Load(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil && json.Unmarshal(value, &kept) != nil {
		var none T
		return none, nil
	}
	return kept, err
}

// store keeps a value under a key.
func store(ctx context.Context, s Storage, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Store(ctx, key, text)
}

// token returns a token acceptable to the registry, as far as is known. refused is a token refused by it; empty for
// none.
func (a *Account) token(ctx context.Context, refused string) (token string, err error) {
	err = locked(ctx, a.storage, a.key, func() error {
		s, err := load[session](ctx, a.storage, a.key)
		if err != nil {
			return err
		}
		if !s.usable(refused, time.Now()) {
			// The session is kept also if the caller has left meanwhile.
			kept := func() error { return store(context.WithoutCancel(ctx), a.storage, a.key, &s) }
			if s.Token == refused {
				s.Token = ""
			}
			if err := a.login.renew(ctx, &s, asks(ctx), kept); err != nil {
				return err
			}
			if err := kept(); err != nil {
				return err
			}
		}
		token = s.Token
		return nil
	})
	return token, err
}

// do sends a request as the user.
func (a *Account) do(ctx context.Context, q call, into any) error {
	return a.doAt(ctx, a.client, q, into)
}

// doAt is do by another client of the registry. If a request is refused because the session has ended, for example by a
// login elsewhere, it is sent once more after one new login.
func (a *Account) doAt(ctx context.Context, at *Client, q call, into any) (err error) {
	if q.token, err = a.token(ctx, ""); err != nil {
		return err
	}
	err = at.do(ctx, q, into)
	if !Is(err, Unauthorized) {
		return err
	}
	if q.token, err = a.token(ctx, q.token); err != nil {
		return err
	}
	return at.do(ctx, q, into)
}

// asking is the key of a context with a person waiting for its operation.
type asking struct{}

// Asking returns a context for operations with a person to be asked to log in, by a *LoginError.
func Asking(ctx context.Context) context.Context { return context.WithValue(ctx, asking{}, true) }

func asks(ctx context.Context) bool {
	may, _ := ctx.Value(asking{}).(bool)
	return may
}

// LoginError asks for the login of a person.
type LoginError struct {
	URL   string    // to open; empty if none is asked yet
	Code  string    // to type there
	Until time.Time // when both end
}

// Error implements error.
func (e *LoginError) Error() string {
	if e.URL == "" {
		return "a person has to log in to the registry"
	}
	return fmt.Sprintf("a person has to log in to the registry at %s, with the code %s, until %s", e.URL, e.Code,
		e.Until.UTC().Format(time.RFC3339))
}
