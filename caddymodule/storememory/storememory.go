// SPDX-License-Identifier: Apache-2.0

package storememory

import (
	"cmp"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(Store)) }

// Store keeps tasks in memory. They end with the process.
type Store struct {
	store.Limits
}

// CaddyModule returns the Caddy module information.
func (*Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: store.Namespace + ".memory", New: func() caddy.Module { return new(Store) }}
}

// Location implements store.Driver: a process has one memory.
func (*Store) Location() string { return "" }

// Open implements store.Driver.
func (s *Store) Open(*slog.Logger) (replay.Store, error) {
	return replay.NewMemory(s.Settings()), nil
}

// Settings implements store.Driver.
func (s *Store) Settings() replay.Settings {
	settings := s.Limits.Settings()
	settings.Capacity = cmp.Or(s.MaxSize, max(replay.DefaultCapacity, s.MaxBytes))
	return settings
}

// Read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store memory
func (s *Store) Read(p *conf.Parser) {
	store.ReadBlock(p, "memory", &s.Limits, nil)
}

// Interface guards.
var (
	_ store.Driver      = (*Store)(nil)
	_ store.Written     = (*Store)(nil)
	_ caddy.Provisioner = (*Store)(nil)
	_ caddy.Validator   = (*Store)(nil)
)
