// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
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
	store replay.Store
	log   *slog.Logger
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// OpenUsed opens the tokens that a store has. They must be closed before the store is.
func OpenUsed(store replay.Store, log *slog.Logger) *Used {
	ctx, stop := context.WithCancel(context.Background())
	u := &Used{store: store, log: log, stop: stop}
	u.done.Go(func() { u.clean(ctx) })
	return u
}

// Close ends the work.
func (u *Used) Close() {
	u.stop()
	u.done.Wait()
}

// add adds a token of a Partner. It reports whether it was not there: of all processes, one adds it.
func (u *Used) add(ctx context.Context, partner string, c *identity.Claims) (fresh bool, err error) {
	sum := sha256.Sum256([]byte(c.Issuer + "|" + c.ID))
	err = u.store.Append(ctx, replay.Append{
		Log: logname.UsedTokenOf(partner, hex.EncodeToString(sum[:])), DueAt: c.Expires.Add(keptAfter), Durable: true,
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, replay.ErrConflict):
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, task.Errorf(task.StoreUnavailable,
		"the gateway cannot store now that the token is used; try again later").
		WithCause(err).WithData("reason", "STORE_UNAVAILABLE")
}

// clean drops tokens that have expired, until ctx ends.
func (u *Used) clean(ctx context.Context) {
	ticker := time.NewTicker(cleanEvery)
	defer ticker.Stop()
	for {
		for due, err := range u.store.Due(ctx, logname.UsedToken, time.Unix(1, 0), time.Now()) {
			if err == nil {
				err = u.store.Append(ctx, replay.Append{Log: due.Log, Expect: 1, Drop: true})
			}
			if err != nil && !errors.Is(err, replay.ErrConflict) {
				if ctx.Err() == nil {
					u.log.Debug("used tokens that have expired could not be dropped; it is tried again", "error", err)
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
