// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// lines are where handlers were written in a Caddyfile that this process has read. What Caddy hands on is JSON, in
// which a handler has no line: so its settings identify it. One that came as JSON has no line here.
var lines struct {
	sync.Mutex

	of map[Fingerprint][]string // of handlers that say the same, in the order in which they were read
}

// Fingerprint is a hash of what a handler says, and of which kind it is: those without settings all say the same.
type Fingerprint [sha256.Size]byte

// The bounds of lines.
const (
	maxFingerprints = 4096
	maxSame         = 64 // lines of handlers that say the same
)

// FingerprintOf returns the fingerprint of a handler that was just read, or as it stands in the configuration.
func FingerprintOf(handler any) (f Fingerprint) {
	if text, err := json.Marshal(handler); err == nil {
		f = sha256.Sum256(fmt.Appendf(nil, "%T %s", handler, text))
	}
	return f
}

// NoteLine notes where a handler is written that was just read: at the token with which its directive begins.
func NoteLine(handler any, at caddyfile.Token) {
	f := FingerprintOf(handler)
	lines.Lock()
	defer lines.Unlock()
	if lines.of == nil || len(lines.of) >= maxFingerprints {
		lines.of = make(map[Fingerprint][]string)
	}
	all := append(lines.of[f], fmt.Sprintf("%s:%d", at.File, at.Line))
	lines.of[f] = all[max(0, len(all)-maxSame):]
}

// LineOf returns where the handler is written that is number i of n in a configuration that say the same; empty if this
// process has not read it in a Caddyfile. It may have read that several times: the last time counts.
func LineOf(f Fingerprint, i, n int) string {
	lines.Lock()
	defer lines.Unlock()
	all := lines.of[f]
	if len(all) < n {
		return ""
	}
	return all[len(all)-n+i]
}
