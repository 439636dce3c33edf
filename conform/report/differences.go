// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/aip-gateway/aip-gateway/conform/run"
)

// Differences writes the tests that ended otherwise at the second address, and returns how many of them are worse
// there.
func Differences(w io.Writer, direct, through *run.Report) (worse int, err error) {
	before := make(map[string]*run.TestResult)
	for _, t := range direct.All() {
		before[t.Test.ID] = t
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nAt %s, and what differs at %s:\n\n", direct.Partner, through.Partner)
	lines := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	differ := 0
	for _, t := range through.All() {
		was := before[t.Test.ID]
		if was == nil || was.Verdict == t.Verdict {
			continue
		}
		differ++
		if was.Verdict == run.Pass && t.Verdict != run.Open {
			worse++
		}
		reason := t.Reason
		if t.Failure != nil {
			reason = t.Failure.Message
		} else if was.Failure != nil {
			reason = "was: " + was.Failure.Message
		}
		fmt.Fprintf(lines, "%s\t%s\t%s → %s\t%.160s\n", t.Test.ID, t.Test.Level, was.Verdict, t.Verdict,
			strings.ReplaceAll(reason, "\n", " "))
	}
	if err := lines.Flush(); err != nil {
		return 0, err
	}
	fmt.Fprintf(&b, "%d of %d differ, %d are worse\n", differ, len(through.All()), worse)
	_, err = io.WriteString(w, b.String())
	return worse, err
}
