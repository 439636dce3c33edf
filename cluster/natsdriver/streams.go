// SPDX-License-Identifier: Apache-2.0

package natsdriver

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

// Streams are the streams of the shards. It implements cluster.Streams.
type Streams struct{ *jetstream.Streams }

// Owner implements cluster.Streams.
func (s Streams) Owner(ctx context.Context, shard int) (cluster.Owner, error) {
	o, err := s.Streams.Owner(ctx, shard)
	return cluster.Owner(o), err
}

// Speak implements cluster.Streams.
func (s Streams) Speak(protocol int) { s.Plain(protocol < 2) }

// Claim implements cluster.Streams.
func (s Streams) Claim(
	ctx context.Context, shard int, after cluster.Owner, node, incarnation string,
) (cluster.Store, error) {
	store, err := s.Streams.Claim(ctx, shard, jetstream.Owner(after), node, incarnation)
	if errors.Is(err, jetstream.ErrClaimed) {
		return nil, cluster.ErrClaimed
	}
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Release implements cluster.Streams.
func (s Streams) Release(ctx context.Context, shard int, after cluster.Owner) error {
	err := s.Streams.Release(ctx, shard, jetstream.Owner(after))
	if errors.Is(err, jetstream.ErrClaimed) {
		return cluster.ErrClaimed
	}
	return err
}
