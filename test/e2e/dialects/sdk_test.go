// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// sdkSteps are the commands that every client gives to its own SDK's agent, and then to the gateway in front of it, in
// this order. What stands in braces is the id of the task, or of the configuration, that the step of that name printed.
var sdkSteps = []struct {
	name  string
	args  []string
	brief bool // for programs that are slow to start, too
}{
	{"card", []string{"card"}, true},
	{"echo", []string{"send", "echo hi"}, true},
	{"get", []string{"get", "{echo}"}, false},
	{"list", []string{"list"}, true},
	{"stream", []string{"stream", "stream 3 10"}, false},
	{"ask", []string{"send", "ask"}, true},
	{"hook", []string{"push-set", "{ask}", "{sink}", "a token"}, true},
	{"hook got", []string{"push-get", "{ask}", "{hook}"}, false},
	{"answer", []string{"send", "blue", "-task", "{ask}"}, true},
	{"fail", []string{"send", "fail"}, false},
	{"fail by stream", []string{"stream", "fail"}, false},
	{"reject", []string{"send", "reject"}, false},
	{"msg", []string{"send", "msg hi"}, true},
	{"msg by stream", []string{"stream", "msg hi"}, false},
	{"file", []string{"send", "file"}, false},
	{"data", []string{"send", "data"}, false},
	{"auth", []string{"send", "auth"}, false},
	{"in", []string{"send", "in", "-task", "{auth}"}, false},
	{"ask by stream", []string{"stream", "ask"}, false},
	{"answer by stream", []string{"stream", "blue", "-task", "{ask by stream}"}, false},
	{"context", []string{"send", "echo hi", "-context", "a context of mine"}, false},
	{"cancel what has ended", []string{"cancel", "{echo}"}, true},
	{"continue an ended task", []string{"send", "echo more", "-task", "{echo}"}, false},
	{"resubscribe to what has ended", []string{"resubscribe", "{echo}"}, false},
	{"get nothing", []string{"get", "no-such-task"}, true},
	{"cancel nothing", []string{"cancel", "no-such-task"}, false},
	{"resubscribe to nothing", []string{"resubscribe", "no-such-task"}, false},
	{"continue an unknown task", []string{"send", "echo hi", "-task", "no-such-task"}, false},
	{"hook of nothing", []string{"push-get", "no-such-task", "no-such-hook"}, false},
	{"hook without a config", []string{"push-get", "{echo}", "no-such-hook"}, false},
	{"slow", []string{"send", "slow 300", "-async"}, false},
	{"get slow", []string{"get", "{slow}"}, false},
	{"cancel slow", []string{"cancel", "{slow}"}, false},
	{"cancel slow again", []string{"cancel", "{slow}"}, false},
	{"get what is canceled", []string{"get", "{slow}"}, false},
}

// sdkPair is a client, and the agent of the same SDK.
type sdkPair struct {
	name, agent, back string
	client            []string
	legacy, slow      bool
}

var sdkPairs = []sdkPair{
	{"legacy-trpc", "legacy-trpc", "legacy-trpc", []string{"legacy-trpc-client"}, true, false},
	{"a2a-go-03", "a2a-go-03", "go-03", []string{"a2a-go-03", "client"}, false, false},
	{"a2a-go-10", "a2a-go-10", "go-10", []string{"a2a-go-10", "client"}, false, false},
	{"a2a-go-10 -rest", "a2a-go-10", "go-10", []string{"a2a-go-10", "client", "-rest"}, false, false},
	{"a2a-go-10 -grpc", "a2a-go-10", "grpc-10", []string{"a2a-go-10", "client", "-grpc"}, false, false},
	{"js-03", "js-03", "js-03", []string{"node", "js-03/client.mjs"}, false, true},
	{"js-10", "js-10", "js-10", []string{"node", "js-10/client.mjs"}, false, true},
	{"js-10 -rest", "js-10", "js-10", []string{"node", "js-10/client.mjs", "-rest"}, false, true},
	{"js-10 -grpc", "a2a-go-10", "grpc-10", []string{"node", "js-10/client.mjs", "-grpc"}, false, true},
}

// sdkDifferences are the steps whose outcome through the gateway may be another one, by the pair ("" for all of them)
// and the step. A failure is never among the outcomes through the gateway but where the protocol demands it.
var sdkDifferences = []struct{ pair, step, direct, through, why string }{
	{
		"a2a-go-10",
		"in",
		`failure`,
		`task auth-required "log in at https://login.example/" ""`,
		"the SDK takes no message while it waits for permission; the task at the gateway keeps waiting, too",
	},
	{
		"a2a-go-10 -rest",
		"in",
		`failure`,
		`task auth-required "log in at https://login.example/" ""`,
		"likewise",
	},
	{
		"a2a-go-03",
		"cancel slow again",
		`task canceled "" ""`,
		`failure`,
		"A2A has an error for what is canceled already: TaskNotCancelable",
	},
	{"a2a-go-10", "cancel slow again", `task canceled "" ""`, `failure`, "likewise"},
	{"a2a-go-10 -rest", "cancel slow again", `task canceled "" ""`, `failure`, "likewise"},
	{
		"a2a-go-10 -grpc",
		"in",
		`failure`,
		`task auth-required "log in at https://login.example/" ""`,
		"likewise",
	},
	{"a2a-go-10 -grpc", "cancel slow again", `task canceled "" ""`, `failure`, "likewise"},
	{"", "msg by stream", `message  "direct: hi" ""`, `status completed "" "direct: hi"`,
		"the gateway shows the task of an agent that does not say at once that it makes none"},
	{
		"a2a-go-03",
		"resubscribe to what has ended",
		`failure`,
		`task completed "ok" "echo: hi"`,
		"the gateway's log does not end with the task",
	},
	{
		"legacy-trpc",
		"fail",
		`failure`,
		`task failed "agent broke" ""`,
		"the SDK's error for a failed task; the task says it as well",
	},
	{"legacy-trpc", "in", `task completed "ok" "echo: authecho: in"`, `task completed "ok" "echo: in"`,
		"both artifacts have the index 0, and v0.1 says that they are one then"},
	{
		"legacy-trpc",
		"continue an ended task",
		`task completed "ok" "echo: hiecho: more"`,
		`task completed "ok" "echo: more"`,
		"likewise",
	},
}

// sdkJobs are the tests that the gateway adds no failure that an agent alone does not have.
func sdkJobs(w *world) (jobs []job) {
	for _, p := range sdkPairs {
		jobs = append(jobs, job{"sdk " + p.name, func(t *testing.T) { asAlone(t, w, p) }})
	}
	return jobs
}

// asAlone gives the same commands to an agent and to the gateway before it.
func asAlone(t *testing.T, w *world, p sdkPair) {
	var mount string
	for _, b := range w.backs {
		if b.name == p.back {
			if mount = w.mount(b); strings.HasSuffix(p.name, "-grpc") {
				mount = b.root
			}
		}
	}
	direct := newSDK(t, w.agents[p.agent], !p.legacy, p.client...).play(t, w, p)
	through := newSDK(t, mount, !p.legacy, p.client...).play(t, w, p)
	for i, step := range sdkSteps {
		a, b := direct[i], through[i]
		known := slices.IndexFunc(sdkDifferences, func(d struct{ pair, step, direct, through, why string }) bool {
			return (d.pair == "" || d.pair == p.name) && d.step == step.name && d.direct == a && d.through == b
		})
		if a != b && known < 0 {
			t.Errorf("%s\ndirectly: %s\nthrough the gateway: %s", step.name, a, b)
		}
	}
}

// play gives all commands, and returns what came of each.
func (s *sdk) play(t *testing.T, w *world, p sdkPair) (outcomes []string) {
	t.Helper()
	ids := []string{"{sink}", w.inbox.url + "/sdk"}
	for _, step := range sdkSteps {
		// The SDK of v0.1 has no way to send without waiting, and does not end a stream that awaits input.
		if p.slow && !step.brief ||
			p.legacy &&
				(slices.Contains(step.args, "-async") || strings.HasSuffix(step.name, " slow") ||
					strings.Contains(step.name, "by stream")) {
			outcomes = append(outcomes, "")
			continue
		}
		names := strings.NewReplacer(ids...)
		var args []string
		for _, arg := range step.args {
			args = append(args, names.Replace(arg))
		}
		status, stdout, stderr := site.RunProcess(
			t,
			t.TempDir(),
			nil,
			s.path,
			append(s.args[:len(s.args):len(s.args)], args...)...)
		if status == 2 {
			outcomes = append(outcomes, "the client has no such command")
			continue
		}
		var seen story
		var kind, id string
		for line := range strings.Lines(stdout) {
			e := viewOfSDK(line)
			seen.add(e)
			if kind = e.Kind; e.Kind == "message" {
				seen.Says += e.Says
			}
			v := gjson.Parse(line)
			if id = seen.ID; kind == "push-config" {
				if id = v.Get("pushNotificationConfig.id").Str; id == "" {
					id = v.Get("id").Str
				}
			}
		}
		if id != "" {
			ids = append(ids, "{"+step.name+"}", id)
		}
		if !site.RestsIn(seen.State) && seen.State != "" {
			seen.State, seen.Says = "running", ""
		}
		outcome := fmt.Sprintf("%s %s %q %q", kind, seen.State, seen.Says, seen.Holds)
		if status != 0 {
			outcome = "failure"
		}
		outcomes = append(outcomes, outcome)
		t.Logf("%s: %s %s", step.name, outcome, strings.TrimSpace(stderr))
	}
	return outcomes
}
