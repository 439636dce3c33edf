// SPDX-License-Identifier: Apache-2.0

package caddymodule

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

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/storefiles"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/survey"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
)

func init() { caddy.RegisterModule(new(PebbleStore)) }

// PebbleStore keeps tasks on disk, in a directory.
type PebbleStore struct {
	// The directory, for one process only. May hold {env.NAME}. Default: aip in Caddy's data directory.
	Dir string `json:"dir,omitempty"`

	// Durability at a loss of power: state (a change of state, before anyone sees it), always (each event, before anyone
	// sees it) or never (the system decides). A crash of the process loses nothing in all three. Default: state.
	Sync string `json:"sync,omitempty"`

	StoreLimits
}

// CaddyModule returns the Caddy module information.
func (*PebbleStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: storeNamespace + ".pebble", New: func() caddy.Module { return new(PebbleStore) }}
}

// Provision sets defaults.
func (s *PebbleStore) Provision(ctx caddy.Context) error {
	conf.OrDefault(&s.Dir, filepath.Join(caddy.AppDataDir(), "aip"))
	dir, err := conf.Replace(caddy.NewReplacer(), s.Dir)
	if err != nil {
		return fmt.Errorf("store: the directory %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("store: the directory %q: %w", s.Dir, err)
	}
	s.Dir = dir
	return s.StoreLimits.Provision(ctx)
}

// Validate checks the settings.
func (s *PebbleStore) Validate() error { return s.checkWritten() }

func (s *PebbleStore) checkWritten() error {
	if _, err := replay.ParseSyncMode(s.Sync); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return s.StoreLimits.checkWritten()
}

// Location implements StoreDriver.
func (s *PebbleStore) Location() string { return s.Dir }

// Open implements StoreDriver.
func (s *PebbleStore) Open(log *slog.Logger) (replay.Store, error) {
	opened, err := pebble.Open(s.Dir, s.Settings(), log)
	if err != nil {
		return nil, explainDamage(s.Dir, err)
	}
	return pebbleStore{opened}, nil
}

// Settings implements StoreDriver.
func (s *PebbleStore) Settings() replay.Settings {
	settings := s.StoreLimits.Settings()
	settings.Sync, _ = replay.ParseSyncMode(s.Sync) // validated
	return settings
}

// Examine implements doctor.ExaminedStore.
func (s *PebbleStore) Examine() error { return plain(pebble.Examine(s.Dir)) }

// read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store pebble [<dir>] {
//		sync        state|always|never
//	}
func (s *PebbleStore) read(p *conf.Parser) {
	if p.NextArg() {
		s.Dir = p.Val()
	}
	readStoreBlock(p, "pebble", &s.StoreLimits, conf.Options{"sync": p.Word(&s.Sync)})
}

// OpenToRead implements storefiles.Driver.
func (*PebbleStore) OpenToRead(dir string) (replay.Store, error) {
	opened, err := pebble.OpenReadOnly(dir, nil)
	if err != nil {
		return nil, plain(explainDamage(dir, err))
	}
	return pebbleStore{opened}, nil
}

// Backup implements storefiles.Driver.
func (*PebbleStore) Backup(ctx context.Context, dir, to string) error {
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
func (*PebbleStore) Import(ctx context.Context, in io.Reader, dir string) (n replay.ArchiveCounts, err error) {
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
func (*PebbleStore) Repair(dir string) (*storefiles.Repaired, error) {
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

// pebbleStore is an open store, with what the host can do with it beside replay.Store.
type pebbleStore struct{ *pebble.Store }

// DiskBytes implements survey.Sized.
func (s pebbleStore) DiskBytes() int64 { return s.Metrics().DiskBytes }

// The metrics of the store on the disk.
var (
	metricFailures = newCounter("store_failures_total", "How often the store became unavailable.")
	metricAppends  = newCounter("store_appends_total", "Appends that were written.")
	metricJournal  = newCounter("store_journal_bytes_total", "Bytes that were written to the journal.")
	metricSyncs    = describe("store_sync_seconds", "Time that a sync of the journal took.")
	metricUnread   = newGauge("store_unread_bytes", "Events in memory that followers of tasks have still to read.")
	metricCompacts = newGauge("store_compactions", "Compactions of the database since it was last opened.")
	metricDisk     = newGauge("store_disk_bytes", "Size of the files of the store.")
	metricFree     = newGauge("store_free_bytes", "Space that is free on the disk of the store.")
	metricMinFree  = newGauge("store_min_free_bytes", "Free space below which new tasks are refused.")
)

// sample implements sampledStore.
func (s pebbleStore) sample(out samples) {
	m := s.Metrics()
	out.add(metricFailures, float64(m.Failures))
	out.add(metricAppends, float64(m.Appends))
	out.add(metricJournal, float64(m.JournalBytes))
	out.durations(metricSyncs, m.Syncs)
	out.add(metricUnread, float64(m.UnreadBytes))
	out.add(metricCompacts, float64(m.Compactions))
	out.add(metricDisk, float64(m.DiskBytes))
	out.add(metricFree, float64(m.FreeBytes))
	out.add(metricMinFree, float64(m.MinFreeBytes))
}

// Interface guards.
var (
	_ StoreDriver          = (*PebbleStore)(nil)
	_ ownDriver            = (*PebbleStore)(nil)
	_ caddy.Provisioner    = (*PebbleStore)(nil)
	_ caddy.Validator      = (*PebbleStore)(nil)
	_ storefiles.Driver    = (*PebbleStore)(nil)
	_ doctor.ExaminedStore = (*PebbleStore)(nil)
	_ operator.CopiedStore = pebbleStore{}
	_ sampledStore         = pebbleStore{}
	_ survey.Sized         = pebbleStore{}
)
