// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(MemoryStore)) }

// MemoryStore keeps tasks in memory. They end with the process.
type MemoryStore struct {
	StoreLimits
}

// CaddyModule returns the Caddy module information.
func (*MemoryStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: storeNamespace + ".memory", New: func() caddy.Module { return new(MemoryStore) }}
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
	settings.Capacity = cmp.Or(s.MaxSize, max(replay.DefaultCapacity, s.MaxBytes))
	return settings
}

// read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store memory
func (s *MemoryStore) read(p *conf.Parser) {
	readStoreBlock(p, "memory", &s.StoreLimits, nil)
}

// Interface guards.
var (
	_ StoreDriver       = (*MemoryStore)(nil)
	_ ownDriver         = (*MemoryStore)(nil)
	_ caddy.Provisioner = (*MemoryStore)(nil)
	_ caddy.Validator   = (*MemoryStore)(nil)
)
