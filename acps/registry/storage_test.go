// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"sync"
)

// memory is a Storage. Its locks are not reentrant.
type memory struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
	kept  map[string][]byte
	full  error // the reason if nothing can be stored
}

func newMemory() *memory {
	return &memory{locks: map[string]chan struct{}{}, kept: map[string][]byte{}}
}

func (m *memory) lock(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[name] == nil {
		m.locks[name] = make(chan struct{}, 1)
	}
	return m.locks[name]
}

func (m *memory) Lock(ctx context.Context, name string) error {
	select {
	case m.lock(name) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memory) Unlock(_ context.Context, name string) error { <-m.lock(name); return nil }

func (m *memory) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, is := m.kept[key]; is {
		return value, nil
	}
	return nil, fs.ErrNotExist
}

func (m *memory) Store(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full == nil {
		m.kept[key] = bytes.Clone(value)
	}
	return m.full
}

func (m *memory) clone() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMemory()
	maps.Copy(next.kept, m.kept)
	return next
}
