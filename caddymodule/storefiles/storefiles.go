// SPDX-License-Identifier: Apache-2.0

// Package storefiles is the contract of drivers whose stores are directories: what is done with one while no process
// uses it.
package storefiles

import (
	"context"
	"errors"
	"io"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Driver is a driver of stores that are directories, for the option --store of commands. No process uses the
// directory meanwhile. Errors are sentences for the operator, with what to do; that of a directory that a process uses
// says that it "is in use".
type Driver interface {
	// OpenToRead opens the store in a directory, and changes nothing. Such a store may be survey.Sized.
	OpenToRead(dir string) (replay.Store, error)

	// Backup copies the store in a directory into another one, which does not exist yet.
	Backup(ctx context.Context, dir, to string) error

	// Import makes a store of an archive, in a directory that does not exist yet. After an error the caller removes it.
	Import(ctx context.Context, archive io.Reader, dir string) (replay.ArchiveCounts, error)

	// Repair makes a store that is damaged one that can be opened, and leaves any other one as it is.
	Repair(dir string) (*Repaired, error)
}

// Repaired is what Driver.Repair has done.
type Repaired struct {
	Bytes int64    // of the journal that could not be read
	Files []string // of the journal, which were damaged, and have been put aside; their names
	Logs  []string // that miss records, and so have ended
	Cut   int      // logs that have not ended, and may miss what came last
}

// DriverName is the driver of the stores that --store names.
const DriverName = "pebble"

// Find returns the driver of the stores that --store names.
func Find() (Driver, error) {
	info, err := caddy.GetModule("aip.stores." + DriverName)
	if err != nil {
		return nil, err
	}
	files, ok := info.New().(Driver)
	if !ok {
		return nil, errors.New("the driver " + DriverName + " of this program has no stores that --store can name")
	}
	return files, nil
}
