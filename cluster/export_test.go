// SPDX-License-Identifier: Apache-2.0

package cluster

// MaxServing is how many calls of others a node carries out at once.
const MaxServing = maxServing

// SetProtocol has a node speak another protocol.
func (c *Config) SetProtocol(n int) { c.protocol = n }
