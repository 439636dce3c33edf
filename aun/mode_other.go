// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package aun

import "io/fs"

// private reports whether only the owner of a file may read it, which its mode does not say here.
func private(fs.FileMode) bool { return true }
