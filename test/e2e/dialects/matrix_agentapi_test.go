// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// agentAPI drives tasks by the Agent API. What that has no request for, a Leader of AIP does that is the same caller.
type agentAPI struct {
	*v1Leader
	mount  string
	client *http.Client

	mu       sync.Mutex
	sessions map[string]string // by task
}

func newAgentAPI(t *testing.T, mount string) driver { return newAgentAPIOf(t, mount) }

func newAgentAPIOf(t *testing.T, mount string) *agentAPI {
	t.Helper()
	return &agentAPI{v1Leader: &v1Leader{site.CallerWith(t, mount, "anonymous")}, mount: mount, client: http.DefaultClient,
		sessions: make(map[string]string)}
}

// agentAPIRequest makes a request of a session; a new one if it is empty.
func agentAPIRequest(mount, session, text, more string) *http.Request {
	if session != "" {
		more += fmt.Sprintf(`,"session_id":%q`, session)
	}
	body := fmt.Sprintf(`{"input":[{"role":"user","type":"message","content":[{"type":"text","text":%q}]}]%s}`, text, more)
	return site.JSONRequest("POST", mount+"/process", body)
}

// viewOfResponse reads an object of the Agent API.
func viewOfResponse(v gjson.Result) view {
	t := view{Kind: "status", ID: taskOfResponse(v.Get("id").Str)}
	switch v.Get("object").Str {
	case "content":
		t = view{Kind: "message"}
		if v.Get("delta").Bool() {
			t = view{Kind: "piece", adds: true, Holds: v.Get("text").Str}
		}
	case "message":
		t = view{Kind: "message"}
	case "response":
		t.State = map[string]string{"created": "submitted", "in_progress": "working"}[v.Get("status").Str]
		if t.State == "" {
			t.State = v.Get("status").Str
		}
		t.Says = v.Get("error.message").Str
		for _, m := range v.Get("output").Array() {
			t.all = true
			if said := site.ContentOf(m.Get("content")); m.Get("metadata.productId").Exists() {
				t.Holds += said
			} else if m.Get("type").Str != "reasoning" {
				t.Says += said
			}
		}
	default:
		t = view{Kind: "error", Says: v.Raw}
	}
	return t
}

// taskOfResponse returns the task in the id of a response.
func taskOfResponse(id string) string {
	rest, _ := strings.CutPrefix(id, "response_")
	return rest[:max(strings.LastIndexByte(rest, '_'), 0)]
}

// follow yields the objects of the stream of a message, until each returns false.
func (a *agentAPI) follow(ctx context.Context, session, text string, each func(view) bool) error {
	res, err := a.client.Do(agentAPIRequest(a.mount, session, text, "").WithContext(ctx))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	last := ""
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			if lines.Text() != "" && lines.Text() != ":" {
				return fmt.Errorf("the stream has the line %q", lines.Text())
			}
			continue
		}
		v := gjson.Parse(data)
		e := viewOfResponse(v)
		if e.Kind == "error" {
			return errors.New(e.Says)
		}
		if e.ID != "" {
			a.remember(e.ID, v.Get("session_id").Str)
			last = e.State
		}
		if !each(e) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !site.RestsIn(last) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (a *agentAPI) remember(task, session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[task] = session
}

func (a *agentAPI) session(task string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[task]
}

// send sends without a stream.
func (a *agentAPI) send(text, task string) view {
	a.T.Helper()
	req := agentAPIRequest(a.mount, a.session(task), text, `,"stream":false`).WithContext(site.Within(a.T, site.Patience))
	res, err := a.client.Do(req)
	if err != nil {
		a.T.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.T.Fatal(err)
	}
	v := gjson.ParseBytes(body)
	t := viewOfResponse(v)
	if t.Kind == "error" {
		a.T.Fatalf("%q is answered with %s", text, body)
	}
	a.remember(t.ID, v.Get("session_id").Str)
	return t
}

func (a *agentAPI) stream(text string) (events []view) {
	a.T.Helper()
	err := a.follow(site.Within(a.T, site.Patience), "", text, func(e view) bool {
		events = append(events, e)
		return true
	})
	if err != nil {
		a.T.Fatal(err)
	}
	return events
}

func (a *agentAPI) start(text string) (id string, wait func() string) {
	a.T.Helper()
	wait = background(a.T, func(ctx context.Context, each func(view) bool) error {
		return a.follow(ctx, "", text, func(e view) bool {
			if id == "" {
				id = e.ID // before the task is seen at work
			}
			return each(e)
		})
	})
	return id, wait
}

// cutting cuts the caller's connection in the middle of a stream. The agent's turn continues, so the session is busy;
// its result is in the log, and the session takes the next message.
func cutting(t *testing.T, w *world, b *back) {
	a := newAgentAPIOf(t, w.mount(b))
	n := 20
	for !a.cutAmong(b, n) {
		n *= 4 // a longer turn has not ended before the next message
	}
}

// cutAmong is cutting with a turn of n pieces. It reports whether the turn had not ended when the next message came.
func (a *agentAPI) cutAmong(b *back, n int) bool {
	t := a.T
	session, id, pieces, last := leader.NewID("session"), "", 0, view{}
	err := a.follow(site.Within(t, site.Patience), session, fmt.Sprintf("stream %d 50", n), func(e view) bool {
		if last = e; e.ID != "" {
			id = e.ID
		}
		if e.Kind == "piece" {
			pieces++
		}
		return pieces < 4
	})
	if err != nil || id == "" || pieces < 4 {
		t.Fatalf("the stream shows the task %q and %d pieces, and ends with %v, after %+v", id, pieces, err, last)
	}
	busy := a.follow(site.Within(t, site.Patience), session, "echo hi", func(view) bool { return true })
	if busy == nil && a.get(id).State == "completed" {
		return false
	}
	if busy == nil || !strings.Contains(busy.Error(), "Task "+session+":"+session+" is already in RUNNING state.") {
		t.Errorf("the next message is answered with %v", busy)
	}
	site.Eventually(t, "the agent finishes", func() bool { return a.get(id).State == "completed" })
	if got := a.get(id); got.Holds != site.Chunks(n) {
		t.Errorf("the task is got as %+v", got)
	}
	if next := a.send("echo hi", id); next.State != "completed" || next.Holds != b.echo || next.ID == id {
		t.Errorf("the next message is answered with %+v", next)
	}
	return true
}
