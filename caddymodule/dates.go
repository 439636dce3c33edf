// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// sharedStorage is what dates need of Caddy's storage, which the gateways of a fleet share.
type sharedStorage interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
}

// dates keeps in Caddy's storage when documents have changed.
type dates struct{ storage sharedStorage }

// keptDate is what the storage has of one document.
type keptDate struct {
	// The digest of its content.
	Digest string `json:"digest"`
	// When it got this content.
	Changed time.Time `json:"changed"`
}

// Date implements gateway.Dates.
func (d dates) Date(ctx context.Context, document, digest string, changed time.Time) (time.Time, error) {
	sum := sha256.Sum256([]byte(document))
	key := "aip/acs/" + hex.EncodeToString(sum[:]) + ".json"
	if kept, err := d.load(ctx, key); err != nil || kept.Digest == digest {
		return kept.Changed, err
	}
	// Another gateway of the fleet may find the same change at the same time. Both are to name the time of the first.
	if err := d.storage.Lock(ctx, key); err != nil {
		return changed, err
	}
	defer func() { _ = d.storage.Unlock(context.WithoutCancel(ctx), key) }() // a lock that is left behind ends by itself
	if kept, err := d.load(ctx, key); err != nil || kept.Digest == digest {
		return kept.Changed, err
	}
	value, err := json.Marshal(keptDate{digest, changed})
	if err != nil {
		return changed, err
	}
	return changed, d.storage.Store(ctx, key, value)
}

// load returns what is kept; nothing if there is none, or if it cannot be read.
func (d dates) load(ctx context.Context, key string) (kept keptDate, err error) {
	value, err := d.storage.Load(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return keptDate{}, nil
	}
	if err == nil && json.Unmarshal(value, &kept) != nil {
		kept = keptDate{} // a crash has cut it off: it is written anew
	}
	return kept, err
}

// Interface guards.
var _ gateway.Dates = dates{}
