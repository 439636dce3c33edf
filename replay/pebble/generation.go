// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// generation is one opening of the database, with the state of its logs. A store has several, one after the other, when
// its disk fails: each ends with the fence of its disk, then comes a read-only one, then, when the disk works again,
// the next writable one.
type generation struct {
	db      *pebble.DB // nil if there is none: it is being opened, or cannot be
	disk    *disk.Fenced
	journal *wal.Journal // nil if the database is only read
	backlog backlog
	logs    *logs
	mark    mark
	inUse   atomic.Bool // it is open, and not only to be read: damage then ends the process

	snapshotsMu sync.Mutex
	snapshots   map[*pebble.Snapshot]struct{}
}

// newGeneration returns a generation without a database.
func (s *Store) newGeneration(mode openMode) *generation {
	return &generation{
		disk:      disk.NewFenced(s.system, s.dir, mode == openRead, s.reserve, s.orphans),
		backlog:   newBacklog(s.sizes.MemTable),
		logs:      newLogs(s.intents),
		snapshots: make(map[*pebble.Snapshot]struct{}),
	}
}

// openMode is the purpose of an opening of a database.
type openMode uint8

const (
	openNew    openMode = iota // to write it; it is made if there is none
	openWrite                  // to write it
	openRead                   // to read it; no file is changed
	openRepair                 // to repair it; there are no commits
)

// writes reports whether a store opened so is written.
func (m openMode) writes() bool { return m == openNew || m == openWrite }

// openGeneration opens the database. The error is a *disk.Error if it cannot be written now, but may be later.
func (s *Store) openGeneration(mode openMode) (_ *generation, err error) {
	defer func() {
		if pebble.IsCorruptionError(err) {
			err = fmt.Errorf("%w; %w", err, ErrDamaged)
		}
	}()
	boot := disk.BootID(s.system)
	found := wal.Recovery{Boot: boot, Unsynced: s.wasUnsynced()}
	g, err := s.openDatabase(mode, &found)
	if err != nil {
		return nil, err
	}
	if err := s.begin(g, mode, boot, &found); err != nil {
		return nil, errors.Join(fmt.Errorf("replay/pebble: %s cannot be opened: %w", s.dir, err), g.close())
	}
	if err := s.intents.open(g, mode, boot); err != nil {
		return nil, errors.Join(fmt.Errorf("replay/pebble: %s cannot be opened: %w", s.dir, err), g.close())
	}
	g.inUse.Store(mode != openRead || !s.readOnly)
	return g, nil
}

// openDatabase opens the database, and replays the journal into it.
func (s *Store) openDatabase(mode openMode, found *wal.Recovery) (*generation, error) {
	g := s.newGeneration(mode)
	cache := pebble.NewCache(64<<20 + 2*int64(s.sizes.MemTable)) // see options
	defer cache.Unref()
	o := s.options(g, cache)
	o.ErrorIfNotExists = mode != openNew
	if mode == openRead { // the journal is replayed into a database writing to memory, but nothing more
		o.DisableAutomaticCompactions = true
		o.L0StopWritesThreshold = math.MaxInt
		o.FormatMajorVersion = disk.OldPebbleFormat // a store of the old format keeps it
	}
	var err error
	if g.db, err = pebble.Open(s.dir, o); err != nil {
		err = fmt.Errorf("replay/pebble: %s cannot be opened: %w", s.dir, err)
		if failed := g.disk.Err(); failed != nil {
			err = errors.Join(failed, err)
		}
		return nil, err
	}
	if err := g.disk.Err(); err != nil { // the opened files may be in memory alone
		return nil, errors.Join(err, g.close())
	}
	if _, err := g.hasFormat(s.dir); err != nil { // before the journal: it may be of another format, too
		return nil, errors.Join(err, g.close())
	}
	if err := g.checkValues(s); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := g.openJournal(s, mode, found); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := g.claim(s.dir, mode); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// checkValues returns an error of damage if a file of large values is missing, or damaged at its end.
func (g *generation) checkValues(s *Store) error {
	names, err := g.tables()
	for name := range names {
		if err == nil && path.Ext(name) == ".blob" {
			err = disk.CheckValues(s.system, s.system.PathJoin(s.dir, name))
		}
	}
	if err != nil {
		return fmt.Errorf("replay/pebble: %s cannot be opened: %w", s.dir, err)
	}
	return nil
}

// tables returns the names of the files with the tables of the database, and with their large values. The iterator
// holds the version it was opened on: a flush or a compaction clears one that nothing holds, even while it is read.
func (g *generation) tables() (map[string]bool, error) {
	for {
		version := g.db.DebugCurrentVersion()
		it, err := g.db.NewIter(nil)
		if err != nil {
			return nil, err
		}
		if version != g.db.DebugCurrentVersion() { // the iterator may hold either
			if err := it.Close(); err != nil {
				return nil, err
			}
			continue
		}
		names := make(map[string]bool)
		for _, level := range version.Levels {
			for table := range level.All() {
				names[table.TableBacking.DiskFileNum.String()+".sst"] = true
			}
		}
		for values := range version.BlobFiles.All() {
			names[values.Physical.FileNum.String()+".blob"] = true
		}
		return names, it.Close()
	}
}

// close releases the database, no longer in use.
func (g *generation) close() error {
	if g.db == nil {
		return nil
	}
	g.snapshotsMu.Lock()
	defer g.snapshotsMu.Unlock()
	for snapshot := range g.snapshots {
		_ = snapshot.Close() // always nil
	}
	clear(g.snapshots)
	g.drainBacklog()
	g.backlog.close()
	if g.journal != nil {
		g.journal.Close()
	}
	return g.db.Close()
}

// options are Pebble's. A memtable takes writes until it is full, then it is flushed: at 10 MB/s and 32 MiB, every
// three seconds, by when most of the index by DueAt and many heads have been replaced and never reach the disk. Pebble
// takes the memtables out of the cache, two of them as a rule, so the cache is 64 MiB for blocks, and those two.
func (s *Store) options(g *generation, cache *pebble.Cache) *pebble.Options {
	log := logger{s.log}
	o := &pebble.Options{
		FS:                 g.disk,
		Lock:               s.lock,
		Cache:              cache,
		FormatMajorVersion: disk.PebbleFormat,
		DisableWAL:         true, // see wal.Journal

		MemTableSize:                s.sizes.MemTable,
		MemTableStopWritesThreshold: 4,
		// Streams need the file descriptors; a store of 100 GB has about a thousand files.
		MaxOpenFiles: 512,
		// The names of logs come in no order, so a flush overlaps all tables there are, and each compaction writes the level
		// below anew. With 10 flushes for one compaction there are a third as many as with 4.
		L0CompactionThreshold: 10,
		L0StopWritesThreshold: 24,
		// A second compaction only when the first does not keep up.
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     log,
		EventListener: &pebble.EventListener{
			// Pebble would try a failed flush or compaction again at once, without end.
			BackgroundError: g.disk.Fail,
			// Otherwise damage is an error of the read. Behind the fence, Pebble may miss what it has not written.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				if g.inUse.Load() && g.disk.Err() == nil {
					log.Fatalf("%s", info)
				}
			},
		},
	}
	o.Experimental.ValueSeparationPolicy = separation
	if s.readOnly {
		o.DisableTableStats = true
	}
	for i := range o.Levels {
		// A block holds some 10 tasks; with fewer, to begin and end blocks is most of the work of a compaction.
		o.Levels[i].BlockSize = 16 << 10
		// Most first reads are of logs that do not exist yet. Pebble asks the filters of all levels but the last one.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// separation is how Pebble keeps large entries: in files of their own, as a compaction need not write them again. A
// tenth of these files may be of dropped logs; then Pebble writes the rest of one to a new file. A compaction that
// joins references to more files than MaxBlobReferenceDepth writes all entries anew: as the names of logs come in no
// order, a low number would be passed by each.
func separation() pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{
		Enabled: true, MinimumSize: maxInline, MaxBlobReferenceDepth: 100,
		RewriteMinimumAge: 5 * time.Second, TargetGarbageRatio: 0.1,
	}
}

// logger passes Pebble's lines to slog: its information at level debug, its errors at level error.
type logger struct{ log *slog.Logger }

// Infof implements pebble.Logger.
func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("replay: pebble: " + fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.log.Error("replay: pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. It must not return: the database cannot continue from its state. An HTTP server
// recovers the panics of its handlers and would leave Pebble's locks held, so it is raised in a goroutine without a
// recover.
func (l logger) Fatalf(format string, args ...any) {
	msg := "replay: pebble: " + fmt.Sprintf(format, args...)
	l.log.Error(msg)
	go panic(msg)
	select {}
}
