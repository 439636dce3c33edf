// SPDX-License-Identifier: Apache-2.0

package conf

import "testing"

// A name that is a few changes away from a known one gets a suggestion, and any other gets none.
func TestNearest(t *testing.T) {
	known := map[string]bool{"timeout": true, "timeouts": true, "identity": true, "aic": true, "aid": true}
	for name, want := range map[string]string{
		"timeot": "timeout", "timeoutss": "timeouts", "idenity": "identity", "Identity": "identity", "aicc": "aic",
		"path": "", "x": "", "": "", "a": "",
	} {
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
