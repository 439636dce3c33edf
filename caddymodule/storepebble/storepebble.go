// SPDX-License-Identifier: Apache-2.0

package storepebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/caddymodule/storefiles"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/survey"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
)

func init() { caddy.RegisterModule(new(Store)) }

// Store keeps tasks on disk, in a directory.
type Store struct {
	// The directory, for one process only. May hold {env.NAME}. Default: aip in Caddy's data directory.
	Dir string `json:"dir,omitempty"`

	// Durability at a loss of power: state (a change of state, before anyone sees it), always (each event, before anyone
	// sees it) or never (the system decides). A crash of the process loses nothing in all three. Default: state.
	Sync string `json:"sync,omitempty"`

	store.Limits
}

// CaddyModule returns the Caddy module information.
func (*Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: store.Namespace + ".pebble", New: func() caddy.Module { return new(Store) }}
}

// Provision sets defaults.
func (s *Store) Provision(ctx caddy.Context) error {
	conf.OrDefault(&s.Dir, filepath.Join(caddy.AppDataDir(), "aip"))
	dir, err := conf.Replace(caddy.NewReplacer(), s.Dir)
	if err != nil {
		return fmt.Errorf("store: the directory %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("store: the directory %q: %w", s.Dir, err)
	}
	s.Dir = dir
	return s.Limits.Provision(ctx)
}

// Validate checks the settings.
func (s *Store) Validate() error { return s.CheckWritten() }

// CheckWritten implements store.Written.
func (s *Store) CheckWritten() error {
	if _, err := replay.ParseSyncMode(s.Sync); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return s.Limits.CheckWritten()
}

// Location implements store.Driver.
func (s *Store) Location() string { return s.Dir }

// Open implements store.Driver.
func (s *Store) Open(log *slog.Logger) (replay.Store, error) {
	settings := s.Settings()
	settings.MaxSize = 0 // it would drop logs
	at, err := pebble.Open(s.Dir, settings, log)
	if err != nil {
		return nil, explainDamage(s.Dir, err)
	}
	return opened{at}, nil
}

// Settings implements store.Driver.
func (s *Store) Settings() replay.Settings {
	settings := s.Limits.Settings()
	settings.Sync, _ = replay.ParseSyncMode(s.Sync) // validated
	return settings
}

// Examine implements doctor.ExaminedStore.
func (s *Store) Examine() error { return plain(pebble.Examine(s.Dir)) }

// Read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store pebble [<dir>] {
//		sync        state|always|never
//	}
func (s *Store) Read(p *conf.Parser) {
	if p.NextArg() {
		s.Dir = p.Val()
	}
	store.ReadBlock(p, "pebble", &s.Limits, conf.Options{"sync": p.Word(&s.Sync)})
}

// OpenToRead implements storefiles.Driver.
func (*Store) OpenToRead(dir string) (replay.Store, error) {
	at, err := pebble.OpenReadOnly(dir, nil)
	if err != nil {
		return nil, plain(explainDamage(dir, err))
	}
	return opened{at}, nil
}

// Backup implements storefiles.Driver.
func (*Store) Backup(ctx context.Context, dir, to string) error {
	if _, err := os.Stat(dir); err != nil {
		return err // and no store is made there
	}
	s, err := pebble.Open(dir, replay.Settings{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return plain(explainDamage(dir, err))
	}
	return plain(errors.Join(s.Backup(ctx, to), s.Close()))
}

// Import implements storefiles.Driver.
func (*Store) Import(ctx context.Context, in io.Reader, dir string) (n replay.ArchiveCounts, err error) {
	s, err := pebble.Open(dir, replay.Settings{Sync: replay.SyncNever}, slog.New(slog.DiscardHandler))
	if err != nil {
		return n, plain(err)
	}
	if n, err = replay.Import(ctx, s, in); err == nil {
		err = s.NoteLoss() // what came after the export may have been read
	}
	return n, errors.Join(err, s.Close())
}

// Repair implements storefiles.Driver.
func (*Store) Repair(dir string) (*storefiles.Repaired, error) {
	done, err := pebble.Repair(dir, slog.New(slog.DiscardHandler))
	return (*storefiles.Repaired)(done), plain(err)
}

// plain returns an error without the name of the package, for an operator.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "replay/pebble: "))
}

// explainDamage adds to the error of a store that is damaged what its operator can do.
func explainDamage(dir string, err error) error {
	if !errors.Is(err, pebble.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%w; copy the directory, then put a backup in its place, or keep what can be read: "+
		"caddy aip store repair --accept-loss --store %s", err, dir)
}

// opened is an open store, with what the host can do with it beside replay.Store.
type opened struct{ *pebble.Store }

// DiskBytes implements survey.Sized.
func (s opened) DiskBytes() int64 { return s.Metrics().DiskBytes }

// Interface guards.
var (
	_ store.Driver         = (*Store)(nil)
	_ store.Written        = (*Store)(nil)
	_ caddy.Provisioner    = (*Store)(nil)
	_ caddy.Validator      = (*Store)(nil)
	_ storefiles.Driver    = (*Store)(nil)
	_ doctor.ExaminedStore = (*Store)(nil)
	_ operator.CopiedStore = opened{}
	_ prometheus.Collector = opened{}
	_ survey.Sized         = opened{}
)
