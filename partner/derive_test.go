// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"strings"
	"testing"
)

// TestDerive: agents know tasks by derived names, so they must never change.
func TestDerive(t *testing.T) {
	if got := derive("session", "a", "b"); got != "session-minvjcb4yxuad7qfs6mja4ii" {
		t.Error(got)
	}
	if got := derive("task", strings.Repeat("x", 600)); got != "task-2243zfesrccvija7hcjdfmva" {
		t.Error(got)
	}
}
