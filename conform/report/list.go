// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// List writes a line for each test.
func List(w io.Writer, documents []*acts.Document) error {
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range documents {
		for _, suite := range d.Suites {
			for _, t := range suite.Tests {
				protocols := t.Protocols
				if len(protocols) == 0 {
					protocols = suite.Protocols
				}
				fmt.Fprintf(lines, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.Level, cmp.Or(t.Section, t.SpecRef),
					strings.Join(protocols, " "), t.Name)
			}
		}
	}
	return lines.Flush()
}
