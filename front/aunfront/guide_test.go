// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/guidetest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

var update = flag.Bool("update", false, "write what is answered into the guide")

// TestGuide replays the transcript of the guide.
func TestGuide(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		guidetest.Replay(t, "../../docs/aun.md", "aun", *update, func(script string) string { return perform(t, script) })
	})
}

// perform performs a transcript, and returns it with the answers. The id of the task is written as ID.
func perform(t *testing.T, script string) string {
	w := newWorld(t)
	alice := w.connect("alice.aid.test", "d1")
	id := ""
	var out strings.Builder
	var result gjson.Result
	var code int
	shown := func(v string) string { return strings.ReplaceAll(v, id, "ID") }
	pieces := 0
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case ">":
			method, params, _ := strings.Cut(rest, " ")
			if result, code = alice.call(method, strings.ReplaceAll(params, `"ID"`, `"`+id+`"`)); id == "" {
				id = result.Get("task_id").String()
			}
		case "<":
			line = "< " + shown(result.Raw)
		case "!":
			line = fmt.Sprintf("! %d %s", code, shown(result.Raw))
		case "*":
			e := alice.next()
			line = "* " + e.method + " " + shown(e.params.Raw)
		case "-":
			verb, said, _ := strings.Cut(rest, " ")
			said = strings.ReplaceAll(said, `\x20`, " ")
			items := []task.DataItem{task.Text(said)}
			switch verb {
			case "works":
				w.say(id, working)
			case "writes":
				p := task.Product{ID: "report", DataItems: items}
				w.say(id, agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: p, Append: pieces > 0,
					Last: pieces > 0}}})
				pieces++
			case "asks":
				w.say(id, agent.Report{State: task.AwaitingInput, Items: items, Revision: "1"})
			case "finishes":
				w.say(id, agent.Report{State: task.AwaitingCompletion, Revision: "2"})
			default:
				t.Fatalf("the transcript has %q", line)
			}
		default:
			t.Fatalf("the transcript has %q", line)
		}
		out.WriteString(line + "\n")
		synctest.Wait()
	}
	if n := len(alice.events); n != 0 {
		t.Errorf("%d events are not in the transcript", n)
	}
	if !json.Valid([]byte(result.Raw)) {
		t.Errorf("the last answer is %s", result.Raw)
	}
	w.stop()
	return out.String()
}
