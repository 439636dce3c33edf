// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// decode decodes a request as a front does.
func decode(body string) (translate.Call, error) {
	v, bad := jsonrpc.ParseValue([]byte(body), jsonrpc.Limits{})
	if bad != nil {
		return translate.Call{}, bad
	}
	n := 0
	req := translate.Request{HTTP: "POST", NewID: func() string { n++; return "id" + string(rune('0'+n)) }}
	req.Params = v
	return Server(false).Decode(&req)
}

var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func state(s task.State, items ...task.DataItem) task.Event {
	return task.Event{Status: &task.Status{State: s, ChangedAt: at, DataItems: items}}
}

func began() task.Event {
	return task.Event{Task: &task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Accepted, ChangedAt: at}}}
}

func piece(product, text string, more bool) task.Event {
	return task.Event{Chunk: &task.Chunk{
		Product: task.Product{ID: product, DataItems: []task.DataItem{task.Text(text)}}, Append: more}}
}

func last(ev task.Event) task.Event {
	ev.Chunk.Last = true
	return ev
}

// sent returns the lines for events.
func sent(t *testing.T, events ...task.Event) (lines []string) {
	t.Helper()
	call := &translate.Call{}
	call.Message.ID = "m"
	e := newEncoder(call, &task.Task{ID: "t", SessionID: "s"})
	ended := false
	for i := range events {
		if ended {
			t.Fatalf("event %d comes behind the end", i)
		}
		for f := e.Event(nil, &events[i]); ; f = f.Next(nil) {
			if f.Data != nil {
				lines = append(lines, string(f.Data))
			}
			if f.Next == nil {
				ended = f.End
				break
			}
		}
	}
	return lines
}

// changing matches the parts differing from run to run: ids, times, and the metadata with the gateway's names of
// products.
var changing = regexp.MustCompile(`(response_|msg_)[-\w]+|("(?:created_at|completed_at)":)\d+|("session_id":)"[^"]*"` +
	`|("metadata":)\{[^}]*\}`)

func unchanging(lines []string) string {
	text := strings.Join(lines, "\n")
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		m := changing.FindStringSubmatch(s)
		switch {
		case m[4] != "":
			return m[4] + "null"
		case m[1] != "":
			return m[1]
		}
		return m[2] + m[3] + "0"
	})
}

// TestStreamsOfTheServer holds streams to the bytes of the server of the Agent API.
func TestStreamsOfTheServer(t *testing.T) {
	for file, events := range map[string][]task.Event{
		"hello": {began(), state(task.Working), piece("p", "Hel", false), piece("p", "lo", true), last(piece("p", "", true)),
			state(task.AwaitingCompletion)},
		"boom": {began(), state(task.Working), piece("p", "Hi", false),
			state(task.Failed, task.Text("Unknown agent error: RuntimeError: kaput"))},
	} {
		t.Run(file, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("testdata", file+".sse"))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(body)) {
				if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
					want = append(want, data)
				}
			}
			if d := cmp.Diff(unchanging(want), unchanging(sent(t, events...))); d != "" {
				t.Errorf("the stream differs (-server +gateway):\n%s", d)
			}
		})
	}
}
