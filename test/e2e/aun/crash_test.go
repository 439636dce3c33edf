// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// followed is what a client has received of a task.
type followed struct {
	id       string
	seen     map[int]bool // the numbers of events
	last     int
	text     string
	status   string
	repeated int
}

// take reads an event. One that has come before is known by its number.
func (f *followed) take(t testing.TB, frame string) {
	var e struct {
		Method string
		Params struct {
			Seq      int
			Status   string
			Append   bool
			Artifact struct{ Content string }
		}
	}
	if err := json.Unmarshal([]byte(frame), &e); err != nil {
		t.Fatal(err)
	}
	p := e.Params
	if f.seen[p.Seq] {
		f.repeated++
		return
	}
	if f.seen[p.Seq] = true; p.Seq != f.last+1 && e.Method != "event/task.completed" {
		t.Errorf("%s: event %d follows %d", f.id, p.Seq, f.last)
	}
	f.last = p.Seq
	if p.Status != "" {
		f.status = p.Status
	}
	if e.Method == "event/task.artifact" {
		if !p.Append {
			f.text = ""
		}
		f.text += p.Artifact.Content
	}
}

// TestAUNCrash: the process dies while an AUN client follows a hundred tasks. After it has connected again, the client
// has every event of every task, in order. What came twice has the number that it had before, and a client that says
// what it has gets nothing twice.
func TestAUNCrash(t *testing.T) {
	const tasks = 100
	_, agent := site.SampleAgent(t)
	s := site.NewAUN(t)
	c := s.Config("a2a/legacy http://"+agent, "agent {\nresend always\n}") // it does no work twice
	s.Start(c)
	client := s.Client("alice.aid.test")
	ctx, cancel := context.WithTimeout(t.Context(), 5*site.Patience)
	defer cancel()
	online := func() *aunpeer.Conn {
		var conn *aunpeer.Conn
		site.Eventually(t, "the client is connected", func() (ok bool) {
			var err error
			conn, err = client.Online(ctx)
			return err == nil
		})
		return conn
	}
	conn := online()
	all := make(map[string]*followed)
	ids := make([]string, tasks)
	begin := func(exact bool) {
		for i := range tasks {
			made, err := conn.Do(ctx, "task.create", map[string]any{"to": site.AUNAgent,
				"message_id": fmt.Sprint("m", i), "input": aunpeer.Text("stream 40 50")})
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = made.TaskID
			if all[made.TaskID] == nil {
				all[made.TaskID] = &followed{id: made.TaskID, seen: make(map[int]bool)}
			}
		}
		for at := 0; at < tasks; at += 50 {
			params := map[string]any{"task_ids": ids[at : at+50]}
			if exact {
				after := make(map[string]int)
				for _, id := range ids[at : at+50] {
					after[id] = all[id].last
				}
				params["after"] = after
			}
			result, err := conn.Call(ctx, "task.subscribe", params)
			var got struct{ Subscribed []string }
			if err != nil || json.Unmarshal(result, &got) != nil || len(got.Subscribed) != 50 {
				t.Fatalf("subscribed to %d: %v", len(got.Subscribed), err)
			}
		}
	}
	take := func() {
		for _, frame := range conn.Received() {
			var e struct {
				Params struct {
					TaskID string `json:"task_id"`
				}
			}
			if json.Unmarshal([]byte(frame), &e) == nil && all[e.Params.TaskID] != nil {
				all[e.Params.TaskID].take(t, frame)
			}
		}
	}
	for round := range 3 {
		repeated := 0
		for _, f := range all {
			repeated += f.repeated
			f.repeated = 0
		}
		t.Logf("%d events came twice", repeated)
		begin(round == 2)
		if len(all) != tasks {
			t.Fatalf("%d tasks", len(all))
		}
		if round == 2 {
			break
		}
		missing := 0 // pieces, at least
		for _, f := range all {
			missing += max(40-f.last, 0)
		}
		some := len(conn.Received()) + min(500, missing/2)
		site.Eventually(t, "the client gets events", func() bool { return len(conn.Received()) >= some })
		s.Process.Kill()
		if _, _, err := conn.Closed(ctx); err == nil {
			t.Error("a process that dies closes its connections in order")
		}
		take()
		s.Start(c)
		conn = online()
	}
	for _, f := range all {
		if f.status == "completed" { // before the last crash
			continue
		}
		if _, err := conn.Event(ctx, func(f aunpeer.Frame) bool { return f.Method == "event/task.completed" }); err != nil {
			t.Fatal(err)
		}
	}
	take()
	conn.Cut()
	repeated := 0
	for _, f := range all {
		if f.status != "completed" || f.text != site.Chunks(40) {
			t.Errorf("%s is %s with %q", f.id, f.status, f.text)
		}
		repeated += f.repeated
	}
	if repeated != 0 {
		t.Errorf("%d events came twice, although the client has said what it had", repeated)
	}
}
