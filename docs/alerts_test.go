// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocsAlerts holds the table of docs/operations.md against contrib/prometheus/alerts.yml, and the pages that the
// alerts name to the headings that there are.
func TestDocsAlerts(t *testing.T) {
	content, err := os.ReadFile("contrib/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	var alerts [][]string
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+).*?severity: (\w+).*?runbook: (\S+)#(\S+)`).
		FindAllStringSubmatch(string(content), -1) {
		alerts = append(alerts, m[1:3])
		if !slices.Contains(headings(all[m[3]]), m[4]) {
			t.Errorf("%s names %s#%s, which is not there", m[1], m[3], m[4])
		}
	}
	var documented [][]string
	for _, row := range tables(all["docs/operations.md"], "| alert | severity | fires when |") {
		documented = append(documented, []string{strings.Trim(row[0], "`"), row[1]})
	}
	if d := cmp.Diff(alerts, documented); d != "" || len(alerts) != strings.Count(string(content), "- alert:") {
		t.Errorf("the alerts (-file +page):\n%s", d)
	}
}
