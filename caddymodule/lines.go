// SPDX-License-Identifier: Apache-2.0

package caddymodule

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

	of map[fingerprint][]string // of handlers that say the same, in the order in which they were read
}

// fingerprint is a hash of what a handler says, and of which kind it is: those without settings all say the same.
type fingerprint [sha256.Size]byte

// The bounds of lines.
const (
	maxFingerprints = 4096
	maxSame         = 64 // lines of handlers that say the same
)

func fingerprintOf(handler any) (f fingerprint) {
	if text, err := json.Marshal(handler); err == nil {
		f = sha256.Sum256(fmt.Appendf(nil, "%T %s", handler, text))
	}
	return f
}

// noteLine notes where a handler is written that was just read: at the token with which its directive begins.
func noteLine(handler any, at caddyfile.Token) {
	f := fingerprintOf(handler)
	lines.Lock()
	defer lines.Unlock()
	if lines.of == nil || len(lines.of) >= maxFingerprints {
		lines.of = make(map[fingerprint][]string)
	}
	all := append(lines.of[f], fmt.Sprintf("%s:%d", at.File, at.Line))
	lines.of[f] = all[max(0, len(all)-maxSame):]
}

// lineOf returns where the handler is written that is number i of n in a configuration that say the same; empty if this
// process has not read it in a Caddyfile. It may have read that several times: the last time counts.
func lineOf(f fingerprint, i, n int) string {
	lines.Lock()
	defer lines.Unlock()
	all := lines.of[f]
	if len(all) < n {
		return ""
	}
	return all[len(all)-n+i]
}
