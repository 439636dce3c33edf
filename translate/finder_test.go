// SPDX-License-Identifier: Apache-2.0

package translate

import "testing"

// The zero Verdict must be the one without a proof: an unasked question has it.
func TestZeroVerdictIsUnsure(t *testing.T) {
	var v Verdict
	if v != Unsure || v == Yes || v == No {
		t.Errorf("the zero Verdict is %d", v)
	}
}
