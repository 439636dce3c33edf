// SPDX-License-Identifier: Apache-2.0

package docs

import "testing"

// TestDocsLenient holds each row of the table of what is borne from agents to a test that shows it. A test says so in a
// line of its comment, "Lenient: " and the first cell of the row.
func TestDocsLenient(t *testing.T) {
	claimed := make(map[string]bool)
	for _, row := range tables(pages(t)["docs/mapping.md"], "| an agent sends | it is read as |") {
		claimed[row[0]] = true
	}
	held(t, "docs/mapping.md", "Lenient", claimed)
}
