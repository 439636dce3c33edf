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

// Store says where tasks are kept, how safely, and for how long.
type Store struct {
	// What keeps the tasks: pebble (on disk) or memory (nothing survives the process). Default: pebble.
	Driver string `json:"driver,omitempty"`

	// Pebble: the directory to keep tasks in, which one process at a time may use. Default: aip in Caddy's
	// data directory.
	Dir string `json:"dir,omitempty"`

	// When a write must survive a loss of power: state (before a change of state is told), always (before
	// anything is told) or never (whenever the system writes it). The death of the process loses nothing that
	// was told in any of them. Pebble only. Default: state.
	Sync string `json:"sync,omitempty"`

	// How long a task that has ended can still be read. Default: 24h.
	Retention caddy.Duration `json:"retention,omitempty"`

	// How many events are kept of one task. Beyond it the oldest are dropped, behind a snapshot of the task.
	// Default: 10000.
	MaxEvents int `json:"max_events,omitempty"`

	// How many bytes of events are kept of one task, likewise; also the most that the products of one task may
	// have together before it fails. Default: 64 MiB.
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// How many bytes are kept of all tasks that have ended, and of their webhooks, together. Beyond it, those whose
	// retention is over next are dropped early; in memory, the least recently used. At least max_bytes.
	// Default: no bound.
	MaxSize int64 `json:"max_size,omitempty"`

	// Memory: how many bytes are kept of all tasks together. Beyond it, tasks that have ended are dropped
	// early; when there are none, no more are started. Default: 512 MiB.
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
		dir, err := filepath.Abs(repl.ReplaceAll(s.Dir, ""))
		if err != nil {
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
			return errors.New("store: capacity is for the memory driver; pebble is bounded by max_size, retention, max_events and max_bytes")
		}
	case driverMemory:
		if s.Dir != "" || s.Sync != "" {
			return errors.New("store: dir and sync are for the pebble driver; memory keeps nothing on disk")
		}
		if s.Capacity < s.MaxBytes {
			return fmt.Errorf("store: capacity (%d bytes) is less than max_bytes (%d), so that one task could not be kept", s.Capacity, s.MaxBytes)
		}
	default:
		return fmt.Errorf("store: there is no driver %q; use pebble or memory", s.Driver)
	}
	if s.Retention < 0 || s.Capacity < 0 || s.MaxSize < 0 {
		return errors.New("store: retention, capacity and max_size must not be negative")
	}
	if s.MaxSize > 0 && s.MaxSize < s.MaxBytes {
		return fmt.Errorf("store: max_size (%d bytes) is less than max_bytes (%d), so that one task could not be kept", s.MaxSize, s.MaxBytes)
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
