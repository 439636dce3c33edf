// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wal

import "github.com/cockroachdb/pebble/v2/vfs"

// mapping would be the file of a segment, mapped into memory. On this system, files are written by system calls only.
type mapping struct{}

func mapFile(vfs.File, int64) *mapping { return nil }

func (*mapping) write([]byte, int64) bool { return false }

func (*mapping) close() {}
