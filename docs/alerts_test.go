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
	all, found := pages(t), 0
	alerts := make(map[string][]string)
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+).*?severity: (\w+).*?runbook: (\S+)#(\S+)`).
		FindAllStringSubmatch(string(content), -1) {
		alerts[m[2]] = append(alerts[m[2]], m[1])
		found++
		if !slices.Contains(headings(all[m[3]]), m[4]) {
			t.Errorf("%s names %s#%s, which is not there", m[1], m[3], m[4])
		}
	}
	documented := make(map[string][]string)
	for _, row := range tables(all["docs/operations.md"], "| severity | alerts |") {
		documented[row[0]] = inQuotes(row[1])
	}
	if d := cmp.Diff(alerts, documented); d != "" || found != strings.Count(string(content), "- alert:") {
		t.Errorf("the alerts (-file +page):\n%s", d)
	}
}
