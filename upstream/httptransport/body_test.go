// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"io"
	"strings"
	"testing"
)

// TestContent proves that a body is sent whole, as often as it must be, and that a large one is not kept once it is
// sent.
func TestContent(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for name, again := range map[string]func() []byte{"small": nil, "large": func() []byte { return []byte(text) }} {
		t.Run(name, func(t *testing.T) {
			body, makeAgain := content([]byte(text), again)
			for range 3 {
				got, err := io.ReadAll(body)
				if err != nil || string(got) != text {
					t.Errorf("read %d bytes, want %d: %v", len(got), len(text), err)
				}
				if s, ok := body.(*releasingReader); ok && s.rest != nil {
					t.Errorf("%d bytes are kept", cap(s.rest))
				} else if ok != (again != nil) {
					t.Errorf("the body is a %T", body)
				}
				if err := body.Close(); err != nil {
					t.Error(err)
				}
				if body, err = makeAgain(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
