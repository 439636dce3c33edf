// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestDocsMappingLost adds members to what a peer says, and looks where they come out.
func TestDocsMappingLost(t *testing.T) {
	const mark = "lost-on-the-way"
	object, list := map[string]any{"k": mark}, []any{mark}
	var want [][]string
	for _, r := range []struct {
		at    []int
		path  string
		value any
	}{
		{[]int{inAIP}, "message.mentions", list}, {[]int{inAIP2}, "command.mentions", list},
		{[]int{inAIP}, "message.groupId", mark}, {[]int{inAIP2}, "command.groupId", mark},
		{[]int{inAIP}, "message.commandParams", object}, {[]int{inAIP2}, "command.commandParams", object},
		{[]int{inAIP, inLegacy, in03, in10}, "message.other", mark}, {[]int{inAIP2}, "command.other", mark},
		{[]int{inLegacy, in03, in10}, "metadata", object},
		{[]int{inLegacy, in03, in10}, "message.metadata", object},
		{[]int{inLegacy, in03, in10}, "message.parts.0.metadata", object},
		{[]int{in03, in10}, "message.extensions", list},
		{[]int{in03, in10}, "message.referenceTaskIds", list},
		{[]int{in03, in10}, "configuration.acceptedOutputModes", list},
		{[]int{in10}, "tenant", mark},
	} {
		f := func(at int) string {
			plain, err := asked(t, mappedServers[at], mappedSend[at], mappedParams[at])
			if err != nil {
				t.Fatal(err)
			}
			call, err := asked(t, mappedServers[at], mappedSend[at], changed(t, mappedParams[at], r.path, r.value))
			if err != nil {
				t.Fatal(err)
			}
			kept := cmp.Diff(plain, call, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })) != ""
			answered := func(at int) string {
				sent := mappedClients[at].AppendTurn(nil, &agent.Turn{Ref: agent.Ref{Task: "t"}, Message: call.Message}, false)
				switch {
				case strings.Contains(string(sent), mark):
					return "passed on"
				case kept:
					return "in the task only"
				}
				return "dropped"
			}
			other := in10
			if at >= inLegacy {
				other = inAIP
			}
			if a, b := answered(at), answered(other); a != b {
				t.Errorf("%s of %s is %s to its own protocol, and %s to the other", r.path, mappedServers[at].Name(), a, b)
			}
			return answered(at)
		}
		want = append(want, []string{quoted(r.path), alike(t, f, r.at...)})
	}
	mapped(t, header("members of params", "are"), merged(want, 0))

	answers := [...]string{
		inAIP: `{"type":"task","id":"t","sessionId":"s","status":{"state":"working","dataItems":[{"type":"text","text":"x"}` +
			`]},` +
			`"products":[{"id":"p","dataItems":[{"type":"text","text":"x"}]}]}`,
		inLegacy: `{"id":"t","status":{"state":"working","message":{"role":"agent",` + mappedParts + `}},"artifacts":[{` +
			mappedParts + `}]}`,
		in03: `{"kind":"task","id":"t","contextId":"c","status":{"state":"working","message":{"role":"agent",` +
			`"messageId":"m",` + mappedParts + `}},` +
			`"artifacts":[{"artifactId":"a",` + mappedParts + `}]}`,
		in10: `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT",` +
			`"messageId":"m","parts":[{"text":"x"}]}},` +
			`"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}`,
	}
	want = nil
	for _, r := range []struct {
		at    []int
		path  string
		value any
	}{
		{[]int{inAIP}, "messageHistory", []any{object}},
		{[]int{inAIP}, "status.stateChangedAt", "2025-09-01T14:30:00+08:00"},
		{[]int{inAIP}, "products.0.dataItems.0.metadata", object},
		{[]int{inAIP}, "products.0.other", mark},
		{[]int{inLegacy, in03, in10}, "metadata", object},
		{[]int{inLegacy, in03, in10}, "history", []any{object}},
		{[]int{inLegacy, in03, in10}, "status.timestamp", "2025-09-01T06:30:00Z"},
		{[]int{inLegacy, in03, in10}, "status.message.metadata", object},
		{[]int{in03, in10}, "status.message.extensions", list},
		{[]int{inLegacy, in03, in10}, "artifacts.0.metadata", object},
		{[]int{in03, in10}, "artifacts.0.extensions", list},
		{[]int{inLegacy, in03, in10}, "artifacts.0.parts.0.metadata", object},
		{[]int{inLegacy, in03, in10}, "artifacts.0.parts.0.other", mark},
	} {
		f := func(at int) string {
			read := func(result string) agent.Report {
				rep, err := mappedClients[at].Reply(fmt.Appendf(nil, enveloped(at), result), nil)
				if err != nil {
					t.Fatalf("%s: %v", result, err)
				}
				rep.Revision, rep.RevisionDated = "", false // a sum of what was said, read or not
				return rep
			}
			if cmp.Diff(read(answers[at]), read(changed(t, answers[at], r.path, r.value))) == "" {
				return "dropped"
			}
			return "kept"
		}
		want = append(want, []string{quoted(r.path), alike(t, f, r.at...)})
	}
	mapped(t, header("members of the answer", "are"), merged(want, 0))
}
