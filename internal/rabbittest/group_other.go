// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package rabbittest

import "syscall"

// Debian's packages, and so this package, need a Unix system: elsewhere it only compiles.
func inGroup(int) *syscall.SysProcAttr { return nil }

func killGroup(int) {}
