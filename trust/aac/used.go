// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	// keptAfter is how long a used token is known after it has expired: a clock that is set back makes it valid again.
	keptAfter = time.Hour
	// cleanEvery is how often the store is looked through for tokens that need not be known any more.
	cleanEvery = time.Minute
)

// Used are the tokens that were used, in a store. A token is a log without records, which is there or not. It may be
// used by any number of goroutines at once.
type Used struct {
	set    *shard.Set
	homes  *shard.Each[usedHome]
	owners *ask.Service[using, bool]
	log    *slog.Logger
}

// usedHome are the tokens of one shard that this process owns.
type usedHome struct {
	store replay.Store
	log   *slog.Logger
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// using is one use of a token, about which the owner of the shard with its log is asked. A use that is asked about
// again, because the answer was lost, is the same one by its id.
type using struct {
	Log  string
	Keep time.Time
	ID   string
}

// OpenUsed opens the tokens that the shards have which this process owns now and later. They must be closed before the
// set is.
func OpenUsed(set *shard.Set, log *slog.Logger) *Used {
	u := &Used{set: set, log: log}
	u.homes, _ = shard.Open(set, func(_ context.Context, _ int, store replay.Store) (*usedHome, error) {
		ctx, stop := context.WithCancel(context.Background())
		h := &usedHome{store: store, log: log, stop: stop}
		h.done.Go(func() { h.clean(ctx) })
		return h, nil // never fails
	}, (*usedHome).close)
	u.owners = ask.New(set, "token", u.use)
	return u
}

// Close ends the work.
func (u *Used) Close() { u.homes.Close() }

func (h *usedHome) close() {
	h.stop()
	h.done.Wait()
}

// use adds a token where its log is. It reports whether it was not there.
func (u *Used) use(ctx context.Context, shard int, q using) (fresh bool, err error) {
	h := u.homes.Of(shard)
	if h == nil {
		return false, replay.ErrFenced
	}
	a := replay.Append{Log: q.Log, DueAt: q.Keep, Durable: true}
	if q.ID != "" {
		a.Metadata = []byte(q.ID)
	}
	if err = h.store.Append(ctx, a); !errors.Is(err, replay.ErrConflict) {
		return err == nil, err
	}
	if q.ID == "" {
		return false, nil
	}
	head, err := h.store.Head(ctx, q.Log)
	return err == nil && string(head.Metadata) == q.ID, err
}

// add adds a token of a Partner. It reports whether it was not there: of all processes, one adds it.
func (u *Used) add(ctx context.Context, partner string, c *identity.Claims) (fresh bool, err error) {
	sum := sha256.Sum256([]byte(c.Issuer + "|" + c.ID))
	q := using{Log: logname.UsedTokenOf(partner, hex.EncodeToString(sum[:])), Keep: c.Expires.Add(keptAfter)}
	if u.set.Peers() != nil {
		q.ID = rand.Text()
	}
	fresh, err = u.owners.Of(ctx, replay.ShardOf(u.set.Count(), q.Log), q)
	switch {
	case err == nil:
		return fresh, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, task.Errorf(task.StoreUnavailable,
		"the gateway cannot store now that the token is used; try again later").
		WithCause(err).WithData("reason", "STORE_UNAVAILABLE")
}

// clean drops tokens that have expired, until ctx ends.
func (h *usedHome) clean(ctx context.Context) {
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	for {
		for due, err := range h.store.Due(ctx, logname.UsedToken, time.Unix(1, 0), time.Now()) {
			if err == nil {
				err = h.store.Append(ctx, replay.Append{Log: due.Log, Expect: 1, Drop: true})
			}
			if err != nil && !errors.Is(err, replay.ErrConflict) {
				if ctx.Err() == nil {
					h.log.DebugContext(ctx, "used tokens that have expired could not be dropped; it is tried again", "error", err)
				}
				break
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
