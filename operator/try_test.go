// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestTry: an operator starts, continues, completes and cancels a task, which is listed like others.
func TestTry(t *testing.T) {
	p := newAlone(t, nil)
	asked := p.try("ask", task.AwaitingInput)
	want := adminapi.TaskName{Partner: "P", Leader: asked.Leader, Task: asked.Task}
	if diff := cmp.Diff(want, asked.TaskName); diff != "" || asked.AgentName != "maps" || asked.Session == "" {
		t.Errorf("the task is %+v (-want +got):\n%s", asked, diff)
	}
	order := func(command, id, text string) {
		t.Helper()
		var of adminapi.Task
		p.ask("POST", adminapi.TryPartner,
			`{"partner":"maps","command":"`+command+`","task":"`+id+`","text":"`+text+`"}`, &of)
		if of.Task != id {
			t.Errorf("%s is answered with %+v", command, of)
		}
	}
	order("continue", asked.Task, "blue")
	p.await(asked.Task, task.AwaitingCompletion)
	order("complete", asked.Task, "")
	p.await(asked.Task, task.Completed)
	slow := p.try("slow 60", task.Working)
	order("cancel", slow.Task, "")
	p.await(slow.Task, task.Canceled)

	const form = `Bad Request: the body must be {"partner": "…", "command": "…", "task": "…", "text": "…"}; ` +
		"a start has no task"
	p.refuses(map[string]string{
		"POST /aip/try {}": form,
		`POST /aip/try {"partner":"P","command":"start","task":"t"}`: form,
		`POST /aip/try {"partner":"P","command":"continue"}`:         form,
		`POST /aip/try {"partner":"P","unknown":1}`:                  form,
		`POST /aip/try {"partner":"P","command":"get","task":"t"}`: `Bad Request: command is "get", but must be start, ` +
			`continue, complete or cancel`,
		`POST /aip/try {"partner":"Q","command":"start"}`: `Conflict: the Partner "Q" is not in the configuration`,
	})
}

// TestTryWhileDrained: a drained gateway refuses starts only. Tasks from before go on and end.
func TestTryWhileDrained(t *testing.T) {
	p := newAlone(t, nil)
	asked, slow := p.try("ask", task.AwaitingInput), p.try("slow 60", task.Working)
	var state adminapi.DrainState
	p.ask("POST", adminapi.Drain, "", &state)
	status, text := p.answer("POST", adminapi.TryPartner, `{"partner":"maps","command":"start","text":"x"}`)
	if status < 400 {
		t.Errorf("a start is answered with %d %s", status, text)
	}
	var of adminapi.Task
	p.ask("POST", adminapi.TryPartner,
		`{"partner":"maps","command":"continue","task":"`+asked.Task+`","text":"blue"}`, &of)
	p.await(asked.Task, task.AwaitingCompletion)
	p.ask("POST", adminapi.TryPartner, `{"partner":"maps","command":"cancel","task":"`+slow.Task+`"}`, &of)
	p.await(slow.Task, task.Canceled)
	p.ask("DELETE", adminapi.Drain, "", &state)
	p.try("hello", task.AwaitingCompletion)
}

// TestTryTooLarge: a text may be as large as the body of a request to the Partner. A larger one starts no task, and
// continues none.
func TestTryTooLarge(t *testing.T) {
	p := newAlone(t, nil)
	most := p.partner().Gateway.MaxBody()
	asked := p.try("ask", task.AwaitingInput)
	fits, large := strings.Repeat("x", most), strings.Repeat("x", most+1)
	order := `POST /aip/try {"partner":"maps","task":"%s","command":"%s","text":"` + large + `"}`
	refused := fmt.Sprintf("Bad Request: text has %d bytes, but must have no more than the %d that limits body of the "+
		"Partner allows", most+1, most)
	p.refuses(map[string]string{
		fmt.Sprintf(order, "", "start"):            refused,
		fmt.Sprintf(order, asked.Task, "continue"): refused,
	})
	p.try(fits, task.AwaitingCompletion)
	var page adminapi.TaskPage
	p.ask("GET", adminapi.Tasks+"?partner=maps", "", &page)
	if len(page.Tasks) != 2 {
		t.Fatalf("there are %d tasks, want the one that waits and the one that fits", len(page.Tasks))
	}
	p.await(asked.Task, task.AwaitingInput)
}
