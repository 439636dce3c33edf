// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/run"
)

// TAP writes the report as version 14 of the Test Anything Protocol. A failure below must has TAP's directive for
// known failures, so that it fails no build.
func TAP(w io.Writer, r *run.Report) error {
	var b strings.Builder
	all := r.All()
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(all))
	for i, t := range all {
		bad := t.Verdict == run.Fail || t.Verdict == run.Error
		result, directive := "ok", ""
		switch {
		case bad:
			result = "not ok"
			if t.Test.Level != "must" {
				directive = " # todo " + string(t.Test.Level)
			}
		case t.Verdict == run.Skip:
			directive = " # skip " + tapText(t.Reason)
		}
		fmt.Fprintf(&b, "%s %d - %s %s %s%s\n", result, i+1, t.Test.ID, t.Protocol, tapText(t.Test.Name), directive)
		if !bad {
			continue
		}
		var detail strings.Builder
		failure(&detail, t)
		fmt.Fprintf(&b, "  ---\n  message: |\n    %s\n  ...\n",
			strings.ReplaceAll(strings.TrimSpace(detail.String()), "\n", "\n    "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tapText(s string) string {
	return strings.NewReplacer("#", `\#`, "\n", " ").Replace(s)
}
