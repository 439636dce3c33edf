// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestClusterMetrics holds the table of docs/cluster.md against the metrics that only a store has which is shared.
func TestClusterMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(aip_cluster_[a-z_]+)` \\| ").FindAllSubmatch(page, -1) {
		documented[string(m[1])] = true
	}
	described := make(map[string]bool)
	out := make(chan *prometheus.Desc)
	go func() {
		defer close(out)
		metrics.Describe(out)
	}()
	for d := range out {
		if m := regexp.MustCompile(`"(aip_cluster_[a-z_]+)"`).FindStringSubmatch(d.String()); m != nil {
			described[m[1]] = true
		}
	}
	if diff := cmp.Diff(described, documented); diff != "" || len(described) < 10 {
		t.Errorf("docs/cluster.md does not have the metrics of the code (-code +page):\n%s", diff)
	}
}
