// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"testing"
)

func TestVersion(t *testing.T) {
	for flag, want := range map[string]string{
		"--json=false": `^gateway  \S+\ncaddy    \S+\ngo       go1\.\S+\n$`,
		"--json":       `^\{"gateway":"\S+","caddy":"\S+","go":"go1\.\S+"\}\n$`,
	} {
		got := runAIP(t, "version", flag)
		if got.Status != 0 || !regexp.MustCompile(want).MatchString(got.Stdout) {
			t.Errorf("%s: %+v", flag, got)
		}
	}
}
