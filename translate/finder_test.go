// SPDX-License-Identifier: Apache-2.0

package translate

import "testing"

// The zero Verdict must be the one that proves nothing: a question that was not asked has it.
func TestZeroVerdictIsUnsure(t *testing.T) {
	var v Verdict
	if v != Unsure || v == Yes || v == No {
		t.Errorf("the zero Verdict is %d", v)
	}
}
