// SPDX-License-Identifier: Apache-2.0

package cluster

// Bounds of the calls of one service that a node carries out for others: how many, and how many bytes it holds.
const (
	MaxServing = maxServing
	MaxHeld    = maxHeld
)

// MaxUnasked is how many bytes of a body are sent unasked.
const MaxUnasked = maxUnasked

// MaxBody is the most bytes of a request.
const MaxBody = maxBody

// SetProtocol has a node speak another protocol.
func (c *Config) SetProtocol(n int) { c.protocol = n }

// PartKinds are the first bytes of messages with parts of bodies, and of those that say how many may be sent.
var PartKinds = map[string]byte{"part": byte(partFrame), "grant": byte(grantFrame), "rest": byte(restFrame),
	"take": byte(takeFrame)}
