// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package aun

import "io/fs"

// private reports true: on this system, the mode of a file does not show whether only its owner may read it.
func private(fs.FileMode) bool { return true }
