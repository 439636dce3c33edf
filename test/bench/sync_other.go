// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "os"

// syncData syncs what was written to a file.
func syncData(f *os.File) error { return f.Sync() }
