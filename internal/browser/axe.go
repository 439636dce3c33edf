// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Inaccessible returns axe-core's findings on the shown page, if they are worse than minor.
func (p *Page) Inaccessible() (all []string) {
	p.t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script, err := os.ReadFile(filepath.Join(filepath.Dir(here), "axe/node_modules/axe-core/axe.min.js"))
	if err != nil {
		p.t.Fatalf("%v; run make axe", err)
	}
	p.Eval("window.axe ? 0 : (() => {"+string(script)+"\n;return 0})()", nil)
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	p.Eval(`axe.run(document, {resultTypes: ["violations"]})
		.then((r) => r.violations.filter((v) => v.impact !== "minor"))`, &found)
	for _, v := range found {
		for _, n := range v.Nodes {
			all = append(all, fmt.Sprintf("%s, %s: %s: %s (%s)", v.Impact, v.ID, v.Help, n.HTML, n.FailureSummary))
		}
	}
	return all
}
