// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// wildRow is one kind of Leader, Partner or agent that people run, by rule: it does on the wire what theirs do. Each of
// its ways must end the same, with the gateway and without.
//
// To add a row, append it to the table of its kind, and the same line to the list of docs/compatibility.md. To add a
// table, give it a test that calls runWild, and a line in wildTables. Rows of Leaders of AIP are made by aipRow, and
// rows of agents of A2A v0.1 by legacyRow and canceledRow, and those of the Agent API by agentAPIRow.
type wildRow struct {
	name string // what is special in it: its line of the page
	set  string // what its operator writes, as the page says: for a way through, in the block of aip_gateway
	want wildEnd
	ways []wildWay // the first one is without the gateway

	// notYet says what the gateway does not do yet. The row then must differ, and the page says so.
	notYet string
}

// wildWay is a way of a caller to an agent.
type wildWay struct {
	name    string
	serve   func(*testing.T) *wildServed
	through bool   // a mount of the gateway that all rows share; false for one without it, or with one of its own
	callers string // the dialects that the gateway takes from callers; default: its own

	// call calls at an address: at the mount of the gateway, or at wildServed.at. It returns what the caller has in the
	// end. What it meets that it does not expect is a part of that, as wildEnd.Broken, and does not fail the test.
	call func(t *testing.T, at string) wildEnd
}

// wildServed is an agent, or a Partner, that is at work for one way of one row.
type wildServed struct {
	at   string          // where a caller without the gateway finds it
	as   string          // the dialect and the URL by which the gateway finds it
	told func() []string // what it was told to do so far, in order; nil where that does not matter
}

// wildEnd is what a caller has in the end, as far as it looks.
type wildEnd struct {
	Settled  []string // the states in which the caller had to act, or nothing followed, in order
	Products []string // the texts of the products that it had last
	Said     []string // the texts of these states: questions, refusals, reasons of failures
	Noted    []string // what else the row is about
	Broken   string   // why it gave up
	Told     []string // what the agent was told to do: twice is seen here
}

// wildTables are all tables of rows, by the headings of docs/compatibility.md above their lists.
var wildTables = map[string][]wildRow{
	"Leaders of AIP":                      wildLeaders,
	"How Leaders are notified":            wildNotified,
	"How Leaders reach a Partner":         wildReach,
	"Partners of AIP behind":              wildBehind,
	"Agents of A2A v0.1":                  wildLegacy,
	"Agents of AUN by messages":           wildAUN,
	"Callers of AUN":                      wildAUNCallers,
	"Agents and callers of the Agent API": wildAgentAPI,
	"Invitations to groups by inbox":      wildGroups,
}

// runWild runs the rows of a table, at once, over one gateway with a mount for each way.
func runWild(t *testing.T, rows []wildRow) {
	t.Helper()
	type run struct {
		wildWay
		*wildServed
	}
	runs := make([][]run, len(rows)) // the first of each row is without the gateway
	var handle strings.Builder
	for r, row := range rows {
		for w, way := range row.ways {
			served := way.serve(t)
			if way.through {
				mount := fmt.Sprintf("/%d/%d", r, w)
				callers := ""
				if way.callers != "" {
					callers = "callers " + way.callers
				}
				fmt.Fprintf(&handle, "\thandle_path %s/* {\n\t\taip_gateway %s {\n%s\n%s\n\t\t}\n\t}\n", mount, served.as, callers,
					row.set)
				served.at = mount
			}
			runs[r] = append(runs[r], run{way, served})
		}
	}
	url := ""
	if handle.Len() > 0 {
		url = site.Serve(t, site.Config{Notify: site.AllowHere, Handle: handle.String()}).URL()
	}
	for r, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			differs := ""
			for n, run := range runs[r] {
				at := run.at
				if run.through {
					at = url + at
				}
				end := run.call(t, at)
				if run.told != nil {
					end.Told = run.told()
				}
				diff := cmp.Diff(row.want, end)
				switch {
				case diff == "":
				case n > 0 && row.notYet != "":
					differs = diff
				default:
					t.Errorf("%s (-want +got):\n%s", run.name, diff)
				}
			}
			if row.notYet != "" {
				t.Logf("not yet, since %s:\n%s", row.notYet, differs)
				if differs == "" {
					t.Error("it works: the row and its page no longer need to say that it does not")
				}
			}
		})
	}
}

// TestWildPage: the page has the rows that are run, in their order, and says of each what the run finds.
func TestWildPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/compatibility.md")
	site.NoError(t, err)
	for heading, rows := range wildTables {
		want := ""
		for _, row := range rows {
			want += "- " + row.name
			if row.notYet != "" {
				want += ": not yet: " + row.notYet
			}
			if row.set != "" {
				want += ": `" + strings.Join(strings.Fields(row.set), " ") + "`"
			}
			want += "\n"
		}
		_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		_, list, _ := strings.Cut(section, "\n- ")
		list, _, _ = strings.Cut("- "+list, "\n\n")
		if diff := cmp.Diff(want, strings.TrimSpace(list)+"\n"); diff != "" {
			t.Errorf("%s (-run +page):\n%s\nIt should be:\n%s", heading, diff, want)
		}
	}
}
