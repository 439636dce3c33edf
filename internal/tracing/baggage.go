// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/baggage"
)

// own begins the names of the members of baggage by which the gateway names the caller to an agent.
const own = "aip."

// Received returns the context of a received request, without the members of its baggage with names of the gateway: a
// caller's claims about itself under these names are not to get to an agent, whether the gateway says anything by them
// or not.
func Received(ctx context.Context) context.Context {
	had := baggage.FromContext(ctx)
	if had.Len() == 0 {
		return ctx
	}
	kept := had
	for _, m := range had.Members() {
		if isOwn(m.Key()) {
			kept = kept.DeleteMember(m.Key())
		}
	}
	if kept.Len() == had.Len() {
		return ctx
	}
	return baggage.ContextWithBaggage(ctx, kept)
}

// isOwn reports whether a reader may take a name for one of the gateway. Names are not percent-encoded, but some
// readers decode them all the same, and ignore case.
func isOwn(name string) bool {
	for {
		name = strings.TrimSpace(name)
		if len(name) >= len(own) && strings.EqualFold(name[:len(own)], own) {
			return true
		}
		decoded := decode(name)
		if decoded == name {
			return false
		}
		name = decoded
	}
}

// decode decodes the percent-encoded parts of a name, and leaves the rest as it is.
func decode(name string) string {
	var out strings.Builder
	for {
		text, rest, found := strings.Cut(name, "%")
		out.WriteString(text)
		if !found {
			return out.String()
		}
		if code, err := strconv.ParseUint(rest[:min(2, len(rest))], 16, 8); err == nil && len(rest) >= 2 {
			out.WriteByte(byte(code))
			rest = rest[2:]
		} else {
			out.WriteByte('%')
		}
		name = rest
	}
}
