// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package disk

import "github.com/cockroachdb/pebble/v2/vfs"

// Mapping would be a file mapped into memory. On this system, files are written by system calls only.
type Mapping struct{}

// MapFile returns nil.
func MapFile(vfs.File, int64) *Mapping { return nil }

// Write returns false.
func (*Mapping) Write([]byte, int64) bool { return false }

// Close does nothing.
func (*Mapping) Close() {}
