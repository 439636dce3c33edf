// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Store is where tasks are stored, how durably, and for how long.
type Store struct {
	// The driver of the store: pebble (on disk) or memory (tasks end with the process). Default: pebble.
	Driver string `json:"driver,omitempty"`

	// Pebble: the directory of the store, which only one process may use. Default: aip in Caddy's data directory.
	Dir string `json:"dir,omitempty"`

	// Pebble: when events are durable, so that they survive a loss of power: state (changes of state are durable before
	// they are sent), always (all events are durable before they are sent) or never (the system decides). A crash of
	// the process loses no event that was sent, in all three. Default: state.
	Sync string `json:"sync,omitempty"`

	// How long a task that has ended is kept. Default: 24h.
	Retention caddy.Duration `json:"retention,omitempty"`

	// How many events of one task are kept. Beyond it, a snapshot of the task replaces the oldest ones. Default: 10000.
	MaxEvents int `json:"max_events,omitempty"`

	// How many bytes of events of one task are kept. Beyond it, a snapshot of the task replaces the oldest ones. A task
	// whose products are larger together fails. Default: 64 MiB.
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// How many bytes of all tasks that have ended, and of their webhooks, are kept. Beyond it, tasks are dropped before
	// the end of their retention, the oldest first; in memory, the least recently used first. At least max_bytes.
	// Default: no limit.
	MaxSize int64 `json:"max_size,omitempty"`

	// Memory: how many bytes of all tasks are kept. Beyond it, tasks that have ended are dropped, and without such tasks
	// new ones are refused. Default: 512 MiB.
	Capacity int64 `json:"capacity,omitempty"`
}

// The names of the store drivers.
const (
	driverPebble = "pebble"
	driverMemory = "memory"
)

func (s *Store) provision() error {
	repl := caddy.NewReplacer()
	orDefault(&s.Driver, driverPebble)
	if s.Driver == driverPebble {
		orDefault(&s.Dir, filepath.Join(caddy.AppDataDir(), "aip"))
		dir, err := replaceAll(repl, s.Dir)
		if err != nil {
			return fmt.Errorf("store: the directory %w", err)
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return fmt.Errorf("store: the directory %q: %w", s.Dir, err)
		}
		s.Dir = dir
	}
	orDefault(&s.Retention, caddy.Duration(replay.DefaultRetention))
	orDefault(&s.MaxEvents, 10000)
	orDefault(&s.MaxBytes, 64<<20)
	if s.Driver == driverMemory {
		orDefault(&s.Capacity, replay.DefaultCapacity)
	}
	return nil
}

func (s *Store) validate() error {
	if _, err := replay.ParseSyncMode(s.Sync); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	switch s.Driver {
	case driverPebble:
		if s.Capacity != 0 {
			return errors.New("store: capacity is for the memory driver; " +
				"pebble is bounded by max_size, retention, max_events and max_bytes")
		}
	case driverMemory:
		if s.Dir != "" || s.Sync != "" {
			return errors.New("store: dir and sync are for the pebble driver; memory keeps nothing on disk")
		}
		if s.Capacity < s.MaxBytes {
			return fmt.Errorf("store: capacity (%d bytes) is less than max_bytes (%d), so that one task could not be kept",
				s.Capacity, s.MaxBytes)
		}
	default:
		return fmt.Errorf("store: there is no driver %q; use pebble or memory", s.Driver)
	}
	if s.Retention < 0 || s.Capacity < 0 || s.MaxSize < 0 {
		return errors.New("store: retention, capacity and max_size must not be negative")
	}
	if s.MaxSize > 0 && s.MaxSize < s.MaxBytes {
		return fmt.Errorf("store: max_size (%d bytes) is less than max_bytes (%d), so that one task could not be kept",
			s.MaxSize, s.MaxBytes)
	}
	// Fewer could not hold the events of one turn behind the snapshot of those before.
	if s.MaxEvents < 16 {
		return fmt.Errorf("store: max_events is %d, but must be at least 16", s.MaxEvents)
	}
	if s.MaxBytes < 64<<10 {
		return fmt.Errorf("store: max_bytes is %d, but must be at least 64KiB", s.MaxBytes)
	}
	return nil
}

func (s *Store) settings() *replay.Settings {
	mode, _ := replay.ParseSyncMode(s.Sync) // validated
	return &replay.Settings{Sync: mode, Retention: time.Duration(s.Retention), MaxSize: s.MaxSize, Capacity: s.Capacity}
}
