// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"testing"
)

// TestDocsDefaultsOnce: the default of an option stands in docs/configuration.md only, which is held to the code.
func TestDocsDefaultsOnce(t *testing.T) {
	figure := regexp.MustCompile("`[^`\n]+`\\s\\(\\d[\\d,.]* ?(s|h|min|minutes|d|days|MiB|KiB|MB)( each)?\\)")
	for name, text := range pages(t) {
		if name == "docs/configuration.md" || name == "CHANGELOG.md" {
			continue
		}
		for _, said := range figure.FindAllString(text, -1) {
			t.Errorf("%s says %s, which is for docs/configuration.md to say", name, said)
		}
	}
}
