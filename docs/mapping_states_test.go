// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestDocsMappingStates(t *testing.T) {
	stateShown := func(s translate.Server, state task.State) string {
		tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: state}}
		cell := quoted(word(shown(s, &tk), "status", "state"))
		if extra := word(shown(s, &tk), "metadata", "aipState"); extra == string(state) {
			cell += " +"
		} else if extra != "" {
			t.Errorf("%s shows %s as %s", s.Name(), state, extra)
		}
		return cell
	}
	var want [][]string
	for _, state := range task.States() {
		for _, at := range []int{inAIP, inAIP2} {
			if got := stateShown(mappedServers[at], state); got != quoted(string(state)) {
				t.Errorf("%s shows %s as %s", mappedServers[at].Name(), state, got)
			}
		}
		row := func(list []translate.Server) []string {
			f := func(at int) string { return stateShown(list[at], state) }
			if got := alike(t, f, in10, inREST); got != inOneZero(f(in03)) {
				t.Errorf("%s is %s in 1.0, and %s in 0.3", state, got, f(in03))
			}
			return []string{quoted(string(state)), f(inLegacy), f(in03)}
		}
		auto, confirm := row(mappedServers), row(confirming)
		if alone := slices.Compact(slices.Clone(auto)); len(alone) == 1 {
			continue // as the page says of states not listed
		}
		if slices.Equal(auto, confirm) {
			want = append(want, auto)
			continue
		}
		auto[0], confirm[0] = auto[0]+", `auto`", confirm[0]+", `confirm`"
		want = append(want, auto, confirm)
	}
	mapped(t, header("canon", "a2a/legacy", "a2a/0.3"), want)
}

// inOneZero returns states of 0.3 as 1.0 has them.
func inOneZero(states string) string {
	var words []string
	for _, state := range inQuotes(states) {
		state = strings.ToUpper(strings.ReplaceAll(state, "-", "_"))
		words = append(words, "TASK_STATE_"+strings.Replace(state, "UNKNOWN", "UNSPECIFIED", 1))
	}
	return quoted(words...)
}

func TestDocsMappingAgentStates(t *testing.T) {
	said := []string{
		"submitted",
		"working",
		"input-required",
		"auth-required",
		"completed",
		"canceled",
		"cancelled",
		"failed",
		"rejected",
		"unknown",
		"TASK_STATE_SUBMITTED",
		"TASK_STATE_WORKING",
		"TASK_STATE_INPUT_REQUIRED",
		"TASK_STATE_AUTH_REQUIRED",
		"TASK_STATE_COMPLETED",
		"TASK_STATE_FAILED",
		"TASK_STATE_CANCELED",
		"TASK_STATE_CANCELLED",
		"TASK_STATE_REJECTED",
		"TASK_STATE_UNSPECIFIED",
		"accepted",
		"awaiting-input",
		"awaiting-completion",
		"done",
	}
	// The table does not have what is read as the other versions write it: see the one of what is borne from agents.
	borne := func(at int, state string) bool {
		later := strings.HasPrefix(state, "TASK_STATE_")
		return (at == inLegacy || at == in03) && later || (at == in10 || at == inREST) && !later
	}
	means := func(at int, state string) string {
		rep, err := mappedClients[at].Reply(
			fmt.Appendf(nil, enveloped(at), fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":%q}}`, state)),
			nil,
		)
		switch {
		case err != nil && task.KindOf(err) == task.InvalidAgentResponse:
			return "refused"
		case err != nil:
			t.Fatal(err)
		case rep.SelfResuming:
			return quoted(string(rep.State)) + ", but the agent may continue by itself"
		case rep.State == task.None:
			return "nothing: it is polled again"
		}
		return quoted(string(rep.State))
	}
	var all []string
	for _, state := range said {
		for at := range mappedClients {
			if m := means(at, state); m != "refused" && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	var want [][]string
	for _, meaning := range all {
		f := func(at int) string {
			var words []string
			for _, state := range said {
				if means(at, state) == meaning && !borne(at, state) {
					words = append(words, state)
				}
			}
			return quoted(words...)
		}
		if got := alike(t, f, in10, inREST); got != inOneZero(f(in03)) {
			t.Errorf("%s has %s in 1.0, and %s in 0.3", meaning, got, f(in03))
		}
		row := []string{alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), meaning}
		if len(slices.Compact(slices.Clone(row))) > 1 {
			want = append(want, row)
		}
	}
	mapped(t, header("aip, aip/2", "a2a/legacy", "a2a/0.3", "means"), want)
}
