// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const guide = "../../docs/aun.md"

// TestGuide carries out the Leader's commands in the guide's transcript of an agent of AUN, and compares the frames and
// what the Leader sees.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```aun-agent\n(.*?)```").FindSubmatchIndex(text)
	if found == nil {
		t.Fatal("the guide has no transcript")
	}
	script := string(text[found[2]:found[3]])
	now := ""
	withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) { now = perform(t, record(t, g), script) })
	if *update {
		text = []byte(string(text[:found[2]]) + now + string(text[found[3]:]))
		if err := os.WriteFile(guide, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(script, now); diff != "" {
		t.Errorf("the transcript of the guide (-page +gateway):\n%s", diff)
	}
}

// perform carries out the commands of a script, and returns it with the frames that are sent and received, and with
// what the Leader sees.
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
		state = task.AwaitingInput // the only one in which the guide continues
		r.settle()
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
