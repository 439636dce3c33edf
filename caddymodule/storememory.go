// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(MemoryStore)) }

// MemoryStore keeps tasks in memory. They end with the process.
type MemoryStore struct {
	StoreLimits

	// How many bytes of all tasks are kept. Beyond it, tasks that have ended are dropped, and without such tasks new ones
	// are refused. At least max_bytes. Default: 512 MiB.
	Capacity int64 `json:"capacity,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*MemoryStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: storeNamespace + ".memory", New: func() caddy.Module { return new(MemoryStore) }}
}

// Provision sets defaults.
func (s *MemoryStore) Provision(ctx caddy.Context) error {
	conf.OrDefault(&s.Capacity, replay.DefaultCapacity)
	return s.StoreLimits.Provision(ctx)
}

// Validate checks the settings.
func (s *MemoryStore) Validate() error {
	if s.Capacity < s.MaxBytes {
		return fmt.Errorf("store: capacity (%d bytes) is less than max_bytes (%d), so that one task could not be kept",
			s.Capacity, s.MaxBytes)
	}
	return s.StoreLimits.Validate()
}

func (s *MemoryStore) checkWritten() error {
	c := *s
	return errors.Join(c.Provision(caddy.Context{}), c.Validate())
}

// Location implements StoreDriver: a process has one memory.
func (*MemoryStore) Location() string { return "" }

// Open implements StoreDriver.
func (s *MemoryStore) Open(*slog.Logger) (replay.Store, error) {
	return replay.NewMemory(s.Settings()), nil
}

// Settings implements StoreDriver.
func (s *MemoryStore) Settings() replay.Settings {
	settings := s.StoreLimits.Settings()
	settings.Capacity = s.Capacity
	return settings
}

// read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store memory {
//		capacity    <size>
//	}
func (s *MemoryStore) read(p *conf.Parser) {
	readStoreBlock(p, "memory", &s.StoreLimits, conf.Options{"capacity": conf.Size(p, &s.Capacity)})
}

// Interface guards.
var (
	_ StoreDriver       = (*MemoryStore)(nil)
	_ ownDriver         = (*MemoryStore)(nil)
	_ caddy.Provisioner = (*MemoryStore)(nil)
	_ caddy.Validator   = (*MemoryStore)(nil)
)
