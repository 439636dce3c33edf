// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"testing"

	"go.opentelemetry.io/otel/baggage"
)

// TestReceived: no member of a caller's baggage has a name for a reader to take for one of the gateway, however it is
// written, and all others stay.
func TestReceived(t *testing.T) {
	for had, want := range map[string]string{
		"":                           "",
		"a=b":                        "a=b",
		"a=b,aip.leader=x":           "a=b",
		"AIP.proof=x,Aip.Leader=y":   "",
		"aip%2Eleader=x,a=b":         "a=b",
		"aip%2eleader=x":             "",
		"%61ip.leader=x":             "",
		"a%69p.leader=x":             "",
		"aip.proo%66=x":              "",
		"%2561ip.leader=x":           "",
		"%20aip.leader=x":            "",
		"%61%69%70%2e%73ubject=x":    "",
		"aipx.leader=y":              "aipx.leader=y",
		"aip=y":                      "aip=y",
		"%zzaip.leader=y":            "%zzaip.leader=y",
		"a%2=y":                      "a%2=y",
		"a=aip.leader;aip.x=y":       "a=aip.leader;aip.x=y",
		"my.aip.leader=y,aip.task=x": "my.aip.leader=y",
	} {
		b, err := baggage.Parse(had)
		if err != nil {
			t.Fatal(had, err)
		}
		if got := baggage.FromContext(Received(baggage.ContextWithBaggage(t.Context(), b))).String(); got != want {
			t.Errorf("of %s stays %s, want %s", had, got, want)
		}
	}
}

// FuzzReceived: whatever a name is, to look at it ends, and a kept one is not the gateway's after decoding.
func FuzzReceived(f *testing.F) {
	for _, name := range []string{"aip.leader", "%61ip.x", "%", "%%61", "%2525%32%35"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !isOwn(name) && isOwn(decode(name)) {
			t.Errorf("%q is kept", name)
		}
	})
}
