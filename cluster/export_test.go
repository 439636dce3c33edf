// SPDX-License-Identifier: Apache-2.0

package cluster

// Bounds of the calls of one service carried out by a node for others: their number, and the bytes held.
const (
	MaxServing = maxServing
	MaxHeld    = maxHeld
)

// MaxUnasked is the number of bytes of a body sent unasked.
const MaxUnasked = maxUnasked

// MaxBody is the most bytes of a request.
const MaxBody = maxBody

// SetProtocol has a node speak another protocol.
func (c *Config) SetProtocol(n int) { c.protocol = n }

// PartKinds are the first bytes of messages with parts of bodies, and of messages granting more of them.
var PartKinds = map[string]byte{"part": byte(partFrame), "grant": byte(grantFrame), "rest": byte(restFrame),
	"take": byte(takeFrame)}
