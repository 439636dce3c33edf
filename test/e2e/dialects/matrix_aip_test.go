// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// v1Leader drives tasks by AIP v01.00.
type v1Leader struct{ *site.Caller }

func newLeader(t *testing.T, mount string) driver { return newLeaderOf(t, mount) }

func newLeaderOf(t *testing.T, mount string) *v1Leader {
	t.Helper()
	return &v1Leader{site.CallerWith(t, mount, "leader-"+leader.NewID("x"))}
}

// viewOfTask is viewOf for a decoded task.
func viewOfTask(t *task.Task) view {
	got := view{Kind: "task", ID: t.ID, State: string(t.Status.State), Says: tellItems(t.Status.DataItems), all: true}
	for i := range t.Products {
		got.Holds += tellItems(t.Products[i].DataItems)
	}
	return got
}

func tellItems(items []task.DataItem) string {
	var b strings.Builder
	for i := range items {
		b.WriteString(items[i].Text + string(items[i].Data) + items[i].Bytes)
	}
	return b.String()
}

func (l *v1Leader) send(text, id string) view {
	l.T.Helper()
	if id == "" {
		return viewOfTask(l.Caller.Start(leader.NewID("task"), text))
	}
	return viewOfTask(l.GoOn(id, text))
}

func (l *v1Leader) get(id string) view { l.T.Helper(); return viewOfTask(l.Caller.Get(id)) }

func (l *v1Leader) cancel(id string) view { l.T.Helper(); return viewOfTask(l.Caller.Cancel(id)) }

func (l *v1Leader) finish(id string) view { l.T.Helper(); return viewOfTask(l.Complete(id)) }

// follow yields the events of a stream, until the task has ended or each returns false.
func (l *v1Leader) follow(ctx context.Context, id, text string, each func(view) bool) error {
	for ev, err := range l.Follow(ctx, site.StartCall(id, text),
		func(err error) { l.T.Errorf("the stream of %s was cut: %v", id, err) }) {
		if err != nil {
			return site.Explain(err)
		}
		if !each(viewOf(gjson.ParseBytes(ev.Raw))) {
			break
		}
	}
	return nil
}

func (l *v1Leader) stream(text string) (events []view) {
	l.T.Helper()
	id := leader.NewID("task")
	err := l.follow(site.Within(l.T, site.Patience), id, text, func(e view) bool {
		events = append(events, e)
		if e.State == "awaiting-completion" {
			l.Complete(id)
		}
		return true
	})
	if err != nil {
		l.T.Fatal(err)
	}
	return events
}

func (l *v1Leader) start(text string) (id string, wait func() string) {
	l.T.Helper()
	id = leader.NewID("task")
	return id, background(
		l.T,
		func(ctx context.Context, each func(view) bool) error { return l.follow(ctx, id, text, each) },
	)
}

// background follows a stream in a goroutine, and returns once the task is at work. wait returns the last state that
// the stream showed.
func background(t testing.TB, follow func(context.Context, func(view) bool) error) (wait func() string) {
	t.Helper()
	working, ended := make(chan struct{}), make(chan struct{})
	var last string
	ctx := site.Within(t, site.Patience)
	go func() {
		defer close(ended)
		begun := false
		err := follow(ctx, func(e view) bool {
			if e.State != "" {
				last = e.State
			}
			if !begun && (last == "working" || site.RestsIn(last)) {
				begun = true
				close(working)
			}
			return true
		})
		if err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if !begun {
			close(working)
		}
	}()
	t.Cleanup(func() { <-ended })
	<-working
	return func() string {
		<-ended
		return last
	}
}

func (l *v1Leader) hooked(text, url, token string) view {
	l.T.Helper()
	id := leader.NewID("task")
	set := fmt.Sprintf(
		`{"jsonrpc":"2.0","method":"notification/set","id":1,"params":{"url":%q,"token":%q,"taskId":%q}}`,
		url,
		token,
		id,
	)
	_, answer := l.Post("/notification/set", []byte(set))
	config := gjson.GetBytes(answer, "result.id").Str
	if config == "" {
		l.T.Fatalf("notification/set is answered with %s", answer)
	}
	call := site.StartCall(id, text)
	call.Message.Params = json.RawMessage(fmt.Sprintf(`{"notificationConfigId":%q}`, config))
	body := task.AppendMessage(nil, &task.Message{
		ID: leader.NewID("msg"), SenderRole: task.Leader, SenderID: l.Sender, Command: task.Start, TaskID: id,
		SessionID: "session", DataItems: call.Message.DataItems, Params: call.Message.Params,
	})
	_, answer = l.Post(
		"/notification/start",
		fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notification/start","id":1,"params":{"message":%s}}`, body),
	)
	return viewOf(gjson.ParseBytes(answer))
}

func aipBegin(mount, id, text string) *http.Request {
	return site.JSONRequest("POST", mount+"/stream", string(site.StreamBody("leader", "start", id, text, "")))
}

func aipAgain(mount, id, last string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount+"/stream",
		string(site.StreamBody("leader", "re-stream", id, "", `"commandParams":{"lastEventSeq":`+last+`},`)),
	)
}

// v2Leader drives tasks by AIP v02, which the Leader of this project does not speak: by bytes.
type v2Leader struct {
	t     *testing.T
	mount string
	own   string // senderId
}

func newLeaderV2(t *testing.T, mount string) driver {
	return &v2Leader{t, mount, leader.NewID("leader")}
}

// v2Command is a TaskCommand.
func v2Command(sender, command, id, text, params string) string {
	items := "[]"
	if text != "" {
		items = fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	}
	return fmt.Sprintf(
		`{"type":"task-command","id":%q,"sentAt":"2026-01-02T03:04:05+08:00","senderRole":"leader","senderId":%q,`+
			`"command":%q,%s"dataItems":%s,"taskId":%q,"sessionId":"s"}`,
		leader.NewID("cmd"),
		sender,
		command,
		params,
		items,
		id,
	)
}

func (l *v2Leader) post(path, body string) gjson.Result {
	l.t.Helper()
	res, err := http.DefaultClient.Do(site.JSONRequest("POST", l.mount+path,
		body).WithContext(site.Within(l.t, site.Patience)))
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		l.t.Fatalf("%s is answered with %s (%v): %s", path, res.Status, err, answer)
	}
	return gjson.ParseBytes(answer)
}

func (l *v2Leader) do(command, id, text string) view {
	l.t.Helper()
	v := l.post("/rpc", rpc("rpc", `{"command":`+v2Command(l.own, command, id, text, "")+`}`))
	if kind := v.Get("result.type").Str; kind != "task-result" {
		l.t.Errorf("%s is answered with a %q: %s", command, kind, v.Raw)
	}
	return viewOf(v)
}

func (l *v2Leader) send(text, id string) view {
	l.t.Helper()
	if id == "" {
		return l.do("start", leader.NewID("task"), text)
	}
	return l.do("continue", id, text)
}

func (l *v2Leader) get(id string) view { l.t.Helper(); return l.do("get", id, "") }

func (l *v2Leader) cancel(id string) view { l.t.Helper(); return l.do("cancel", id, "") }

func (l *v2Leader) finish(id string) view { l.t.Helper(); return l.do("complete", id, "") }

func (l *v2Leader) begin(id, text string) *wireStream {
	l.t.Helper()
	return openStream(
		l.t,
		site.JSONRequest("POST", l.mount+"/stream", rpc("stream", `{"message":`+v2Command(l.own, "start", id, text, "")+`}`)),
	)
}

func (l *v2Leader) stream(text string) (events []view) {
	l.t.Helper()
	id := leader.NewID("task")
	s := l.begin(id, text)
	for {
		_, e, ok := s.next(l.t)
		if !ok {
			return events
		}
		events = append(events, e)
		if e.State == "awaiting-completion" {
			l.finish(id)
		}
	}
}

func (l *v2Leader) start(text string) (id string, wait func() string) {
	l.t.Helper()
	id = leader.NewID("task")
	s := l.begin(id, text)
	return id, background(l.t, func(_ context.Context, each func(view) bool) error {
		for s.lines.Scan() {
			if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok && !each(viewOf(gjson.Parse(data))) {
				break
			}
		}
		return s.lines.Err()
	})
}

func (l *v2Leader) hooked(text, url, token string) view {
	l.t.Helper()
	id := leader.NewID("task")
	set := l.post(
		"/notification/set",
		rpc("notification/set", fmt.Sprintf(`{"url":%q,"token":%q,"taskId":%q}`, url, token, id)),
	)
	config := set.Get("result.id").Str
	if config == "" {
		l.t.Fatalf("notification/set is answered with %s", set.Raw)
	}
	params := fmt.Sprintf(`"commandParams":{"notificationConfigId":%q},`, config)
	return viewOf(
		l.post(
			"/notification/start",
			rpc("notification/start", `{"command":`+v2Command(l.own, "start", id, text, params)+`}`),
		),
	)
}

func aip2Begin(mount, id, text string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount+"/stream",
		rpc("stream", `{"message":`+v2Command("leader", "start", id, text, "")+`}`),
	)
}

func aip2Again(mount, id, last string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount+"/stream",
		rpc(
			"stream",
			`{"message":`+v2Command("leader", "re-stream", id, "", `"commandParams":{"lastEventSeq":`+last+`},`)+`}`,
		),
	)
}
