// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package agents

import "math"

// maxFiles returns how many files the process may have open: this system has no bound of its own.
func maxFiles() int { return math.MaxInt32 }
