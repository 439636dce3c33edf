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
			return []string{quoted(string(state)), f(inLegacy), f(in03), alike(t, f, in10, inREST)}
		}
		auto, confirm := row(mappedServers), row(confirming)
		if slices.Equal(auto, confirm) {
			want = append(want, auto)
			continue
		}
		auto[0], confirm[0] = auto[0]+", `auto`", confirm[0]+", `confirm`"
		want = append(want, auto, confirm)
	}
	mapped(t, header("canon", "a2a/legacy", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), want)
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
		want = append(
			want,
			[]string{alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), alike(t, f, in10, inREST), meaning},
		)
	}
	mapped(t, header("aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0, a2a/1.0-rest", "means"), want)
}
