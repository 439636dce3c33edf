// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"time"
)

// Patience is the longest wait for an owner of a shard.
const Patience = 10 * time.Second

// The owner of a moving shard is asked again, first after firstTry, then after twice as long each time, up to mostTry.
const (
	firstTry = 5 * time.Millisecond
	mostTry  = 250 * time.Millisecond
)

// Tries paces the tries to reach the owner of a moving shard. The zero value is before the first try.
type Tries struct{ pause time.Duration }

// Wait waits until the next try, for a time at most. The error is the one of ctx.
func (t *Tries) Wait(ctx context.Context, most time.Duration) error {
	t.pause = min(max(2*t.pause, firstTry), mostTry)
	select {
	case <-time.After(min(t.pause, most)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
