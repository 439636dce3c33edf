// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// readers are the ways of callers to take the answer from a stream.
var readers = map[string]func(objects []gjson.Result) string{
	"the last message of the output": func(objects []gjson.Result) string {
		output := objects[len(objects)-1].Get("output").Array()
		return textsOf(output[len(output)-1])
	},
	"the last message that is complete, of type message": func(objects []gjson.Result) (text string) {
		for _, o := range objects {
			if o.Get("object").Str == "message" && o.Get("type").Str == "message" && o.Get("status").Str == "completed" {
				text = textsOf(o)
			}
		}
		return text
	},
	"the last text that is complete": func(objects []gjson.Result) (text string) {
		for _, o := range objects {
			if o.Get("object").Str == "content" && o.Get("status").Str == "completed" && o.Get("text").Exists() {
				text = o.Get("text").Str
			}
		}
		return text
	},
	"pieces, which a whole text replaces": func(objects []gjson.Result) (text string) {
		for _, o := range objects {
			switch {
			case o.Get("object").Str != "content" || !o.Get("text").Exists():
			case o.Get("delta").Bool():
				text += o.Get("text").Str
			default:
				text = o.Get("text").Str
			}
		}
		return text
	},
	"pieces alone": func(objects []gjson.Result) (text string) {
		for _, o := range objects {
			if o.Get("delta").Bool() {
				text += o.Get("text").Str
			}
		}
		return text
	},
	"the last message where all that were seen are complete": func(objects []gjson.Result) string {
		open := make(map[string]bool)
		for _, o := range objects {
			switch {
			case o.Get("object").Str != "message":
			case o.Get("status").Str != "completed":
				open[o.Get("id").Str] = true
			default:
				if delete(open, o.Get("id").Str); len(open) == 0 {
					return textsOf(o)
				}
			}
		}
		return "nothing, since one never is"
	},
}

func textsOf(message gjson.Result) (text string) {
	for _, c := range message.Get("content").Array() {
		text += c.Get("text").Str
	}
	return text
}

// TestAnswerIsLast: with any reader, a caller takes the agent's answer, and not the agent's words beside it.
func TestAnswerIsLast(t *testing.T) {
	const answer = "It rains"
	says := func(s task.State, text string) task.Event { return state(s, task.Text(text)) }
	table := task.Event{Chunk: &task.Chunk{Last: true, Product: task.Product{ID: "t",
		DataItems: []task.DataItem{{Kind: task.DataKind, Data: json.RawMessage(`{"rows":[1]}`)}}}}}
	for name, tt := range map[string]struct {
		events []task.Event
		output string // the texts of all messages, in order
		pieces string // default: the answer
	}{
		"a closing word": {events: []task.Event{state(task.Working), last(piece("a", answer, false)),
			says(task.AwaitingCompletion, "Done.")}, output: "Done.|It rains"},
		"a closing word behind pieces that say no end": {events: []task.Event{state(task.Working), piece("a", "It ", false),
			piece("a", "rains", true), says(task.Completed, "Done.")}, output: "Done.|It rains"},
		"progress": {events: []task.Event{says(task.Accepted, "yes"), says(task.Working, "step 1"),
			says(task.Working, "step 2"), last(piece("a", answer, false)), state(task.AwaitingCompletion)},
			output: "yes|step 1|step 2|It rains"},
		"progress behind the answer": {events: []task.Event{last(piece("a", answer, false)), says(task.Working, "tidy up"),
			says(task.Working, "nearly"), says(task.AwaitingCompletion, "Done.")}, output: "tidy up|nearly|Done.|It rains"},
		"two products": {events: []task.Event{last(piece("a", "first", false)), says(task.Working, "on it"),
			last(piece("b", answer, false)), says(task.AwaitingCompletion, "Done.")},
			output: "first|on it|Done.|It rains", pieces: "firstIt rains"},
		"an answer in the status": {events: []task.Event{says(task.Working, "step 1"),
			says(task.AwaitingCompletion, answer)}, output: "step 1|It rains"},
		"an answer in the status, beside a table": {events: []task.Event{state(task.Working), table,
			says(task.AwaitingCompletion, answer)}, output: "|It rains"},
		"a question, beside a draft": {events: []task.Event{last(piece("a", "draft", false)),
			says(task.AwaitingInput, answer)}, output: "draft|It rains", pieces: "draftIt rains"},
		"a task that is finished when it is first seen": {events: []task.Event{{Task: &task.Task{
			Status:   task.Status{State: task.Completed, DataItems: []task.DataItem{task.Text("Done.")}},
			Products: []task.Product{{ID: "a", DataItems: []task.DataItem{task.Text(answer)}}}}}}, output: "Done.|It rains"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []gjson.Result
			for _, line := range sent(t, tt.events...) {
				objects = append(objects, gjson.Parse(line))
			}
			for reader, read := range readers {
				want := answer
				if reader == "pieces alone" && tt.pieces != "" {
					want = tt.pieces
				}
				if got := read(objects); got != want {
					t.Errorf("%s: %q, want %q", reader, got, want)
				}
			}
			var output []string
			for _, m := range objects[len(objects)-1].Get("output").Array() {
				output = append(output, textsOf(m))
			}
			if d := cmp.Diff(tt.output, strings.Join(output, "|")); d != "" {
				t.Errorf("the output (-want +got):\n%s", d)
			}
		})
	}
}

// TestOverBeforeFailure: messages that were over when the task failed are complete, and others never are.
func TestOverBeforeFailure(t *testing.T) {
	got := shorts(sent(t, state(task.Working, task.Text("hm")), last(piece("a", "A", false)), piece("b", "B", false),
		last(piece("c", "C", false)), state(task.Failed)))
	want := []string{"response created", "response in_progress",
		"message in_progress 1 reasoning", `content completed 1[0] text "hm"`,
		"message in_progress 2 message", "message completed 1 reasoning", `content in_progress 2[0] text "A"`,
		"message in_progress 3 message", `content completed 2[0] text "A"`, "message completed 2 message",
		`content in_progress 3[0] text "B"`, "message in_progress 4 message", `content in_progress 4[0] text "C"`,
		`content completed 4[0] text "C"`, "message completed 4 message",
		"response failed with 3 AGENT_UNKNOWN_ERROR: The task is failed."}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
