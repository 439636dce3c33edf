// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

// SetNow sets the clock of a node.
func (c *Config) SetNow(now func() time.Duration) { c.now = now }

// MaxServing is how many calls of others a node carries out at once.
const MaxServing = maxServing
