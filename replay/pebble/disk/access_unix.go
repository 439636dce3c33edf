// SPDX-License-Identifier: Apache-2.0

//go:build unix

package disk

import "golang.org/x/sys/unix"

// access returns an error if no files can be made in a directory.
func access(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
