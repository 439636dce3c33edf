// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"

	"github.com/aip-gateway/aip-gateway/replay"
)

// writer implements replay.Writer. It holds the log in the generation of its last use. The methods of Store taking the
// name of a log are those of a writer used once.
type writer struct {
	store *Store
	name  string
	of    *logs // of the generation that log belongs to; nil before the first use
	log   *log
}

// Write is the method replay.Write looks for.
func (s *Store) Write(name string) replay.Writer { return &writer{store: s, name: name} }

// use returns the log in the open generation. It is called between Store.enter and exit.
func (w *writer) use() *log {
	if now := w.store.logs; w.of != now {
		w.Close()
		w.of, w.log = now, now.use(w.name)
	}
	return w.log
}

// Close implements replay.Writer.
func (w *writer) Close() {
	if w.of != nil {
		w.of.leave(w.log)
		w.of, w.log = nil, nil
	}
}

// Head implements replay.Store.
func (s *Store) Head(ctx context.Context, name string) (replay.Head, error) {
	w := writer{store: s, name: name}
	defer w.Close()
	return w.Head(ctx)
}

// Append implements replay.Store.
func (s *Store) Append(ctx context.Context, a replay.Append) error {
	w := writer{store: s, name: a.Log}
	defer w.Close()
	return w.Append(ctx, a)
}

// Load implements replay.Store.
func (s *Store) Load(ctx context.Context, name string) (replay.Head, []byte, []replay.Record, error) {
	w := writer{store: s, name: name}
	defer w.Close()
	return w.Load(ctx)
}
