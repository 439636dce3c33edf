// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"testing"
	"time"
)

// memoryStorage is a storage in memory, which may have its faults.
type memoryStorage struct {
	kept   map[string][]byte
	locked int
	fail   error
	locks  func() // called when it is locked
}

func (s *memoryStorage) Lock(context.Context, string) error {
	s.locked++
	if s.locks != nil {
		s.locks()
	}
	return s.fail
}

func (s *memoryStorage) Unlock(context.Context, string) error { s.locked--; return nil }

func (s *memoryStorage) Load(_ context.Context, key string) ([]byte, error) {
	if value, ok := s.kept[key]; ok {
		return value, nil
	}
	return nil, fs.ErrNotExist
}

func (s *memoryStorage) Store(_ context.Context, key string, value []byte) error {
	s.kept[key] = value
	return nil
}

// TestDates: a document has changed when the first gateway has seen its content.
func TestDates(t *testing.T) {
	s := &memoryStorage{kept: make(map[string][]byte)}
	at := func(hour int) time.Time { return time.Date(2025, 1, 1, hour, 0, 0, 0, time.UTC) }
	check := func(what, document, digest string, hour, want int) {
		t.Helper()
		got, err := dates{s}.Date(t.Context(), document, digest, at(hour))
		if err != nil || !got.Equal(at(want)) || s.locked != 0 {
			t.Errorf("%s: %v %v, want %v; %d locks", what, got, err, at(want), s.locked)
		}
	}
	check("the first time", "one", "a", 1, 1)
	check("the same content", "one", "a", 2, 1)
	check("another document", "two", "a", 3, 3)
	check("another content", "one", "b", 4, 4)
	check("the first content again", "one", "a", 5, 5)

	other := maps.Clone(s.kept)
	s.locks = func() { s.kept = other } // another gateway was faster
	s.kept = make(map[string][]byte)
	check("at the same time", "one", "a", 6, 5)
	s.locks = nil

	for key := range s.kept {
		s.kept[key] = s.kept[key][:5]
	}
	check("a value that is cut off", "one", "a", 7, 7)
	s.fail = errors.New("no lock")
	if got, err := (dates{s}).Date(t.Context(), "one", "c", at(8)); err == nil || !got.Equal(at(8)) {
		t.Errorf("without a lock: %v %v", got, err)
	}
}
