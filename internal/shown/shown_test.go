// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOneOf(t *testing.T) {
	got := []string{OneOf([]string{"a"}), OneOf([]string{"a", "b"}), OneOf([]string{"a", "b", "c"})}
	if diff := cmp.Diff([]string{"a", "a or b", "a, b or c"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlaceholders(t *testing.T) {
	if diff := cmp.Diff([]string{"{env.A}", "{file./b}"}, Placeholders("x{env.A}{secret}{file./b}")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
