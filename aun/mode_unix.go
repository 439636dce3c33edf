// SPDX-License-Identifier: Apache-2.0

//go:build unix

package aun

import "io/fs"

// private reports whether only the owner of a file with this mode may read it.
func private(mode fs.FileMode) bool { return mode&0o077 == 0 }
