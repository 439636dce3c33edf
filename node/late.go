// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"iter"

	"github.com/aip-gateway/aip-gateway/replay"
)

// lateLogs are the logs of a shard of a store that may not be reached yet. Then they are unavailable.
type lateLogs struct {
	// find returns the logs; nil while they cannot be had.
	find func() replay.Logs
}

// Load implements replay.Logs.
func (l lateLogs) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	if logs := l.find(); logs != nil {
		return logs.Load(ctx, log)
	}
	return replay.Head{}, nil, nil, replay.ErrUnavailable
}

// Head implements replay.Logs.
func (l lateLogs) Head(ctx context.Context, log string) (replay.Head, error) {
	if logs := l.find(); logs != nil {
		return logs.Head(ctx, log)
	}
	return replay.Head{}, replay.ErrUnavailable
}

// Read implements replay.Logs.
func (l lateLogs) Read(log string, after uint64) replay.Reader {
	if logs := l.find(); logs != nil {
		return logs.Read(log, after)
	}
	return unavailable{}
}

// Listed implements replay.Logs.
func (l lateLogs) Listed(ctx context.Context, list string, after replay.ListedLog) iter.Seq2[replay.ListedLog, error] {
	if logs := l.find(); logs != nil {
		return logs.Listed(ctx, list, after)
	}
	return func(yield func(replay.ListedLog, error) bool) { yield(replay.ListedLog{}, replay.ErrUnavailable) }
}

// unavailable is a reader of a log that cannot be had.
type unavailable struct{}

// Next implements replay.Reader.
func (unavailable) Next(context.Context, replay.Reserve) ([]replay.Record, bool, error) {
	return nil, false, replay.ErrUnavailable
}

// Wake implements replay.Reader.
func (unavailable) Wake(f func()) {
	if f != nil {
		f() // there is an error to be returned
	}
}

// Alone implements replay.Reader.
func (unavailable) Alone() bool { return false }

// Rewind implements replay.Reader.
func (unavailable) Rewind(uint64) {}

// Close implements replay.Reader.
func (unavailable) Close() {}
