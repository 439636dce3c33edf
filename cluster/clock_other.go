// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "time"

func now() time.Duration { return sinceStart() }
