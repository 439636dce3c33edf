// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// meter counts the actions of a Store, over all its generations.
type meter struct {
	appends  atomic.Uint64 // written
	journal  wal.Meter
	failures atomic.Uint64 // number of times the store became unavailable
}

// Metrics are the counts of a Store since it was opened, and its sizes.
type Metrics struct {
	Appends      uint64           // written
	JournalBytes uint64           // written
	Syncs        measure.Snapshot // of the journal; one is shared by the appends waiting at the same time
	Failures     uint64           // number of times the store became unavailable
	UnreadBytes  int64            // of events in memory still to be read by followers
	Compactions  int64            // of the database, since it was last opened; 0 while it is being opened
	DiskBytes    int64            // of all files in the directory
	FreeBytes    uint64           // on the disk; 0 if the system does not say
	MinFreeBytes uint64           // with less free, no new log is begun; 0 if the system does not know the free space
}

// Metrics returns the metrics of now. It reads the sizes of the files.
func (s *Store) Metrics() Metrics {
	m := Metrics{
		Appends: s.meter.appends.Load(), JournalBytes: s.meter.journal.Written.Load(),
		Syncs:    s.meter.journal.Syncs.Snapshot(),
		Failures: s.meter.failures.Load(), DiskBytes: s.diskBytes(), MinFreeBytes: s.free.Least,
	}
	if usage, err := s.system.GetDiskUsage(s.dir); err == nil {
		m.FreeBytes = usage.AvailBytes
	}
	if s.enter(context.Background()) == nil {
		m.Compactions, m.UnreadBytes = s.db.Metrics().Compact.Count, s.logs.tails.Load()
		s.gate.RUnlock()
	}
	return m
}

// diskBytes returns the size of all files in the directory.
func (s *Store) diskBytes() (n int64) {
	names, err := s.system.List(s.dir)
	if err != nil {
		return 0
	}
	for _, name := range names {
		if info, err := s.system.Stat(s.system.PathJoin(s.dir, name)); err == nil && !info.IsDir() {
			n += info.Size()
		}
	}
	return n
}
