// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"crypto/sha256"
	"encoding/base32"

	"github.com/aip-gateway/aip-gateway/internal/logname"
)

// lowerBase32 is the encoding of derived names.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// AgentTask returns the name that the gateway gives a task for its agent, by the name of the task's log. An agent that
// names tasks itself has another one.
func AgentTask(log string) string { return derive("task", log) }

// derive returns a name that is always the same for the same parts, and from which they cannot be read.
func derive(kind string, parts ...string) string {
	var buf [512]byte
	all := append(buf[:0], kind...)
	for _, part := range parts {
		all = append(append(all, logname.Separator...), part...)
	}
	sum := sha256.Sum256(all)
	name := append(append(buf[:0], kind...), '-')
	return string(lowerBase32.AppendEncode(name, sum[:15]))
}
