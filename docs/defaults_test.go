// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestDocsDefaultsOnce: the default of an option stands below docs/configuration only, where it is made of the code.
func TestDocsDefaultsOnce(t *testing.T) {
	figure := regexp.MustCompile("`[^`\n]+`\\s\\(\\d[\\d,.]* ?(s|h|min|minutes|d|days|MiB|KiB|MB)( each)?\\)")
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/configuration/") || name == "CHANGELOG.md" {
			continue
		}
		for _, said := range figure.FindAllString(text, -1) {
			t.Errorf("%s says %s, which is for the pages below docs/configuration to say", name, said)
		}
	}
}
