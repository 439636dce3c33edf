// SPDX-License-Identifier: Apache-2.0

package replay

import "context"

// A Writer is one log of a Store, for a caller reading and writing it several times: the Store need not find its data
// on the log again. Others may use the log meanwhile. One goroutine at a time uses a Writer.
type Writer interface {
	// Load is Store.Load.
	Load(ctx context.Context) (Head, []byte, []Record, error)
	// Head is Store.Head.
	Head(ctx context.Context) (Head, error)
	// Append is Store.Append. Append.Log need not be set.
	Append(ctx context.Context, a Append) error
	// Close ends the use of the Writer. It may be closed after the store.
	Close()
}

// Write returns a Writer of a log. The log need not exist. A Store may have a method of its own for it; for others, the
// log is looked for each time.
func Write(s Store, log string) Writer {
	if w, ok := s.(interface{ Write(log string) Writer }); ok {
		return w.Write(log)
	}
	return named{s, log}
}

// named implements Writer by the name of the log.
type named struct {
	store Store
	log   string
}

func (n named) Load(ctx context.Context) (Head, []byte, []Record, error) {
	return n.store.Load(ctx, n.log)
}

func (n named) Head(ctx context.Context) (Head, error) { return n.store.Head(ctx, n.log) }

func (n named) Append(ctx context.Context, a Append) error {
	a.Log = n.log
	return n.store.Append(ctx, a)
}

func (named) Close() {}
