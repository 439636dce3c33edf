// SPDX-License-Identifier: Apache-2.0

package agentca_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync"
)

// storage is a Storage in memory, which several Keepers share.
type storage struct {
	mu     sync.Mutex
	values map[string][]byte
	locks  map[string]chan struct{}
}

func newStorage() *storage {
	return &storage{values: make(map[string][]byte), locks: make(map[string]chan struct{})}
}

func (s *storage) lock(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[name] == nil {
		s.locks[name] = make(chan struct{}, 1)
	}
	return s.locks[name]
}

func (s *storage) Lock(ctx context.Context, name string) error {
	select {
	case s.lock(name) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *storage) Unlock(_ context.Context, name string) error {
	<-s.lock(name)
	return nil
}

func (s *storage) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, is := s.values[key]
	if !is {
		return nil, fs.ErrNotExist
	}
	return value, nil
}

func (s *storage) Store(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = append([]byte(nil), value...)
	return nil
}

func (s *storage) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
	return nil
}

// orders returns how many orders are known in it, also those that have led to a certificate.
func (s *storage) orders() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range s.values {
		n += strings.Count(string(value), `"url":`) + strings.Count(string(value), `"chain":`)
	}
	return n
}

// crasher ends a process at one of its steps: a step is a request, or a write. Before that step has its effect, or
// after it, but before the process knows. From then on, nothing that the process does has an effect.
type crasher struct {
	storage *storage
	next    http.RoundTripper
	at      int // the step, from 1
	after   bool

	mu    sync.Mutex
	steps int
	dead  bool
}

var errCrash = errors.New("the process has crashed")

// step carries out a step, unless the process is dead.
func (c *crasher) step(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return errCrash
	}
	c.steps++
	if c.steps != c.at {
		return f()
	}
	c.dead = true
	if c.after {
		_ = f()
	}
	return errCrash
}

func (c *crasher) RoundTrip(req *http.Request) (res *http.Response, err error) {
	err = c.step(func() error {
		res, err = c.next.RoundTrip(req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (c *crasher) Store(ctx context.Context, key string, value []byte) error {
	return c.step(func() error { return c.storage.Store(ctx, key, value) })
}

func (c *crasher) Lock(ctx context.Context, name string) error   { return c.storage.Lock(ctx, name) }
func (c *crasher) Unlock(ctx context.Context, name string) error { return c.storage.Unlock(ctx, name) }
func (c *crasher) Delete(ctx context.Context, name string) error { return c.storage.Delete(ctx, name) }
func (c *crasher) Load(ctx context.Context, key string) ([]byte, error) {
	return c.storage.Load(ctx, key)
}
