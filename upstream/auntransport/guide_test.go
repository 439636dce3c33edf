// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/guidetest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestGuide carries out the Leader's commands in the guide's transcript of an agent of AUN, and compares the frames and
// the Leader's view.
func TestGuide(t *testing.T) {
	withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) {
		guidetest.Replay(t, "../../docs/aun.md", "aun-agent", *update, func(script string) string {
			return perform(t, record(t, g), script)
		})
	})
}

// perform carries out the commands of a script, and returns it with the frames sent and received, and with the Leader's
// view.
func perform(t *testing.T, r *recorder, script string) string {
	t.Helper()
	defer r.agent.Close()
	var out strings.Builder
	ref, state := agent.Ref{}, task.None
	for line := range strings.Lines(script) {
		rest, ok := strings.CutPrefix(line, "- ")
		if !ok {
			continue
		}
		command, text, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
		name := string(rune('a' + len(r.record.Files)))
		turn := start(name, text)
		if command == "continue" {
			turn.Ref, turn.From, turn.Message.Command = ref, state, task.Continue
		}
		r.begin(name)
		var seen string
		seen, ref = carryOut(t, r.agent, turn)
		state = task.AwaitingInput // the only state of a continue in the guide
		r.awaitIdle()
		out.WriteString(line)
		for frame := range strings.Lines(string(r.record.Files[len(r.record.Files)-1].Data)) {
			out.WriteString(shortened(frame))
		}
		out.WriteString("= " + seen + "\n")
	}
	return out.String()
}

// shortened returns a line of a record without the envelope of JSON-RPC.
func shortened(line string) string {
	mark, frame := line[:1], gjson.Parse(line[2:])
	method := frame.Get("method").Str
	switch {
	case method == "":
		return "< " + frame.Get("result").Raw + "\n"
	case mark == "<":
		mark = "*"
	}
	return mark + " " + method + " " + frame.Get("params").Raw + "\n"
}
