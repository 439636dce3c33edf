// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

func readGroup(t *testing.T, body []byte) GroupMessage {
	t.Helper()
	m, err := ReadGroupMessage(body, jsonrpc.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// groupCommand: a command of v01.00 is read as its Message, and so is the same one of v02.
func groupCommand(t *testing.T, body []byte) {
	want := decodeJSON[task.Message](t, string(body))
	for dialect, body := range map[string][]byte{
		"aip": body, "aip/2": []byte(strings.Replace(string(body), `"message"`, `"task-command"`, 1)),
	} {
		m := readGroup(t, body)
		if m.Kind != TaskCommand || m.Dialect != dialect || m.ID != want.ID || m.SenderID != "agent-leader-aic" ||
			m.GroupID != "group123" || !slices.Equal(m.Mentions, want.Mentions) {
			t.Errorf("%+v", m)
		}
		if !m.For("AGENT-partner-2") || m.For("agent-partner-1") != (want.Mentions == nil) {
			t.Errorf("%s is for other members than %v", want.ID, want.Mentions)
		}
		call, err := m.Command("group123")
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, task.AppendMessage(nil, &want), task.AppendMessage(nil, &call.Message))
		if call.Stream || !call.Followed ||
			call.Tentative != (want.Command == task.Start) {
			t.Errorf("%s: %+v", want.Command, call)
		}
	}
}

// groupTask: a member's Task in the form of v01.00 is the specification's.
func groupTask(t *testing.T, body []byte) {
	state := decodeJSON[task.Task](t, string(body))
	form := GroupForm{Dialect: "aip", AIC: state.SenderID, GroupID: state.GroupID}
	state.SenderID, state.GroupID = "", ""
	sameJSON(t, body, form.AppendTask(nil, "ignored", &state))
	m := readGroup(t, body)
	if m.Kind != OtherMessage || m.SenderID != form.AIC || m.GroupID != form.GroupID || m.For("x") {
		t.Errorf("%+v", m)
	}
}

func groupManagement(t *testing.T, body []byte) {
	m := readGroup(t, body)
	got, err := m.Management()
	if err != nil || m.Kind != MemberCommand || m.Dialect != "aip" || !m.For("agent-partner-1") ||
		m.For("agent-partner-2") {
		t.Fatalf("%+v, %v", m, err)
	}
	want := task.Management{ID: "mgmt-msg-5678", SentAt: time.Date(2025, 9, 1, 12, 30, 0, 0, beijing),
		SenderID: "agent-leader-aic", Mentions: []string{"agent-partner-1"}, Command: task.LeaveGroup}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// memberStatus: the status of a member is the specification's, with the items and the group of a message.
func memberStatus(t *testing.T, body []byte) {
	body = append(bytes.TrimRight(body, " \n}"), `},"dataItems":[],"groupId":"group123"}`...)
	form := GroupForm{Dialect: "aip", AIC: "agent-partner-1", GroupID: "group123"}
	sameJSON(t, body, form.AppendMemberStatus(nil, "mgmt-msg-5679", time.Date(2025, 9, 1, 12, 30, 5, 0, beijing), "s",
		task.MemberStatus{}))
	if m := readGroup(t, body); m.Kind != OtherMessage || m.SenderID != "agent-partner-1" {
		t.Errorf("%+v", m)
	}
}

// TestGroupFormV2 tests a member's messages in the form of v02.
func TestGroupFormV2(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, beijing)
	f := GroupForm{Dialect: "aip/2", AIC: "1.2.156.P", GroupID: "g1"}
	if v1 := (GroupForm{Dialect: "aip"}); !f.AnnouncesMembers() || v1.AnnouncesMembers() {
		t.Error("a member publishes its status when it has joined in v02 only")
	}
	begin := func(kind, id string) string {
		return `{"type":"` + kind + `","id":"` + id + `","sentAt":"2026-01-02T03:04:05+08:00","senderRole":"partner",` +
			`"senderId":"1.2.156.P",`
	}
	state := task.Task{ID: "t1", SessionID: "s1", SenderID: "another", GroupID: "another",
		Status:         task.Status{State: task.Working, ChangedAt: at.Truncate(time.Second)},
		MessageHistory: []task.Message{{ID: "m"}}, StatusHistory: []task.Status{{State: task.Accepted}}}
	for want, got := range map[string][]byte{
		begin("task-result", "msg-1") + `"taskId":"t1","groupId":"g1","sessionId":"s1","status":{"state":"working",` +
			`"stateChangedAt":"2026-01-02T03:04:05+08:00"},"products":[]}`: f.AppendTask(nil, "msg-1", &state),
		begin("task-result", "msg-2") + `"taskId":"t1","groupId":"g1","sessionId":"s1","status":{"state":"rejected",` +
			`"stateChangedAt":"2026-01-02T03:04:05+08:00","dataItems":[{"type":"text","text":"too many tasks"}]},` +
			`"products":[]}`: f.AppendRejected(nil, "msg-2", &task.Message{TaskID: "t1", SessionID: "s1"}, at,
			task.Errorf(task.LimitExceeded, "too many tasks")),
		begin("group-mgmt-result", "msg-3") + `"status":{"connected":true,"muted":true},"dataItems":[],"groupId":"g1"}`: f.
			AppendMemberStatus(nil, "msg-3", at.UTC(), "", task.MemberStatus{Connected: true, Muted: true}),
		begin("group-mgmt-result", "msg-4") + `"status":{"connected":false,"muted":false},"dataItems":[],"groupId":"g1",` +
			`"sessionId":"s\"1"}`: f.AppendMemberStatus(nil, "msg-4", at, `s"1`, task.MemberStatus{}),
	} {
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Error(d)
		}
		if m := readGroup(t, got); m.Kind != OtherMessage || m.SenderID != f.AIC || m.GroupID != "g1" {
			t.Errorf("%+v", m)
		}
	}
	if state.SenderID != "another" || state.MessageHistory == nil {
		t.Error("the task has changed")
	}
	// A refusal without a sentence has the one of its kind, and an error without a kind shows nothing of itself.
	for _, err := range []error{task.Errorf(task.LimitExceeded, ""), errors.New("secret")} {
		out := string(f.AppendRejected(nil, "m", &task.Message{TaskID: "t"}, at, err))
		if strings.Contains(out, "secret") || strings.Contains(out, `"text":""`) {
			t.Error(out)
		}
	}
}

// TestGroupManagementV2 reads the commands for members of v02.
func TestGroupManagementV2(t *testing.T) {
	for _, command := range task.GroupCommands() {
		body := jsonOf(object{"type": "group-mgmt-command", "id": "c1", "sentAt": "2026-01-02T03:04:05Z",
			"senderRole": "leader", "senderId": "1.2.156.L", "mentions": "all", "command": string(command), "groupId": "g1",
			"sessionId": "s1", "dataItems": nil})
		m := readGroup(t, body)
		got, err := m.Management()
		if err != nil || m.Kind != MemberCommand || m.Dialect != "aip/2" || !m.For("anyone") {
			t.Fatalf("%s: %+v, %v", command, m, err)
		}
		want := task.Management{ID: "c1", SentAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), SenderID: "1.2.156.L",
			Mentions: []string{"all"}, Command: command, GroupID: "g1", SessionID: "s1"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// TestMentions: for a task, no mention is a mention of all, in both versions; for members it is none.
func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		mentions      any
		task, members bool
	}{
		{absence{}, true, false}, {nil, true, false}, {[]any{}, true, false}, {"all", true, true},
		{[]any{"all"}, true, true}, {[]any{"other", "all"}, true, true}, {[]any{"ME"}, true, true},
		{[]any{"other", "me"}, true, true}, {[]any{"other"}, false, false}, {[]any{"mee"}, false, false},
	} {
		for kind, body := range map[string]object{
			"message":            {"command": "start", "taskId": "t"},
			"task-command":       {"command": "start", "taskId": "t"},
			"group-mgmt-message": {"groupMgmtCommand": "mute"},
			"group-mgmt-command": {"command": "mute", "groupId": "g"},
		} {
			want := tt.task
			if strings.HasPrefix(kind, "group") {
				want = tt.members
			}
			m := readGroup(t, jsonOf(with(body, object{"type": kind, "senderId": "l", "mentions": tt.mentions})))
			if got := m.For("me"); got != want {
				t.Errorf("%s with the mentions %v: %v", kind, tt.mentions, got)
			}
		}
	}
}

// TestGroupMessageRefused: a message of no version is an error with the name of the field, and one for others is no
// error.
func TestGroupMessageRefused(t *testing.T) {
	start := object{"type": "message", "senderId": "l", "command": "start", "taskId": "t"}
	leave := object{"type": "group-mgmt-command", "senderId": "l", "command": "leave-group", "groupId": "g"}
	for name, tt := range map[string]struct {
		body  any
		field string // empty for no error
	}{
		"no object":           {[]any{start}, "type"},
		"string":              {"message", "type"},
		"no type":             {with(start, object{"type": absence{}}), "type"},
		"number as type":      {with(start, object{"type": 1}), "type"},
		"another type":        {with(start, object{"type": "group-invitation"}), "type"},
		"no sender":           {with(start, object{"senderId": absence{}}), "senderId"},
		"long sender":         {with(start, object{"senderId": strings.Repeat("x", 257)}), "senderId"},
		"number as group":     {with(start, object{"groupId": 1}), "groupId"},
		"number as mentions":  {with(start, object{"mentions": 1}), "mentions"},
		"another word":        {with(start, object{"mentions": "everyone"}), "mentions"},
		"numbers as mentions": {with(start, object{"mentions": []any{"a", 1}}), "mentions[1]"},
		"no task":             {with(start, object{"taskId": absence{}}), "taskId"},
		"unknown command":     {with(start, object{"command": "stop"}), "command"},
		"number as command":   {with(start, object{"command": 1}), "command"},
		"stream":              {with(start, object{"command": "re-stream"}), "command"},
		"items":               {with(start, object{"dataItems": []any{object{"type": "text"}}}), "dataItems[0].text"},
		"parameters": {with(start, object{"commandParams": object{"maxProductsBytes": -1}}),
			"commandParams.maxProductsBytes"},
		"v02, no command":  {with(start, object{"type": "task-command", "command": nil}), "command"},
		"v02, no group":    {with(leave, object{"groupId": nil}), "groupId"},
		"v02, no member's": {with(leave, object{"command": "start"}), "command"},
		"v01, no member's": {with(leave, object{"type": "group-mgmt-message", "groupMgmtCommand": "quit"}),
			"groupMgmtCommand"},
		"no time":               {with(leave, object{"sentAt": "yesterday"}), "sentAt"},
		"number as session":     {with(leave, object{"sessionId": 1}), "sessionId"},
		"a message of nothing":  {object{"type": "message"}, ""},
		"a partner's message":   {with(start, object{"senderRole": "partner", "dataItems": 1}), ""},
		"a partner's command":   {with(leave, object{"senderRole": "partner", "command": 1}), ""},
		"a damaged task":        {object{"type": "task", "senderId": 1, "groupId": []any{}, "status": 7}, ""},
		"a damaged result":      {object{"type": "task-result", "mentions": 1}, ""},
		"a member's status":     {object{"type": "group-mgmt-message", "groupMemberStatus": 1}, ""},
		"a member's status, v2": {object{"type": "group-mgmt-result"}, ""},
	} {
		body := jsonOf(tt.body)
		m, err := ReadGroupMessage(body, jsonrpc.Limits{})
		if err == nil {
			switch m.Kind {
			case TaskCommand:
				_, err = m.Command("g")
			case MemberCommand:
				_, err = m.Management()
			}
		}
		e, _ := errors.AsType[*task.Error](err)
		if tt.field == "" && (err != nil || m.Kind != OtherMessage) ||
			tt.field != "" && (e == nil || e.Kind != task.InvalidParams || e.Field != tt.field || e.Detail == "") {
			t.Errorf("%s: %+v, %v", name, m.Kind, err)
		}
	}
	for _, body := range []string{"", "{", "\xef\xbb\xbf{}", `{"type":"message","type":"task"}`, "null\x00"} {
		if _, err := ReadGroupMessage([]byte(body), jsonrpc.Limits{}); err == nil {
			t.Errorf("%q is read", body)
		}
	}
	if _, err := ReadGroupMessage(jsonOf(start), jsonrpc.Limits{Bytes: 10}); err == nil {
		t.Error("a message that is too large is read")
	}
}

// TestGroupCommandRoundTrip: a command published in any version and read again is the same.
func TestGroupCommandRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 7))
	for range 2000 {
		want := randomMessage(rnd)
		if want.GroupID == "" {
			want.GroupID = "g"
		}
		if want.Command == task.ReStream {
			want.Command = task.Get
		}
		for dialect, body := range map[string][]byte{
			"aip": form.AppendMessage(nil, &want), "aip/2": appendCommand(nil, &want),
		} {
			m := readGroup(t, body)
			if m.Dialect != dialect || m.Kind != TaskCommand {
				t.Fatalf("%+v: %s", m, body)
			}
			call, err := m.Command("g")
			if err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			for i := range body {
				body[i] = 'x'
			}
			if d := cmp.Diff(want, call.Message, cmpopts.EquateEmpty()); d != "" {
				t.Fatal(d)
			}
		}
	}
}

// TestAnswer: the answer to a command is the task in the form of the group, and shows its histories.
func TestAnswer(t *testing.T) {
	for _, dialect := range []string{"aip", "aip/2"} {
		f := GroupForm{Dialect: dialect, AIC: "me", GroupID: "group123"}
		for _, state := range translatetest.Tasks() {
			plain := state
			plain.MessageHistory, plain.StatusHistory = nil, nil
			want := f.AppendTask(nil, "id-1", &plain)
			if d := cmp.Diff(string(want), string(f.AppendAnswer(nil, "id-1", &plain))); d != "" {
				t.Error(d)
			}
			if out := string(f.AppendAnswer(nil, "id-1", &state)); strings.Contains(out,
				`History":[`) != (state.MessageHistory != nil) || strings.ContainsAny(out, "\r\n") {
				t.Error(out)
			}
		}
	}
}

func FuzzGroupMessage(f *testing.F) {
	for _, name := range []string{"28-group-message-start", "31-group-message-complete-mentions", "40-group-mgmt-leave",
		"41-group-mgmt-member-status", "30-group-task-awaiting-completion"} {
		f.Add(vector(f, name+".json"))
	}
	f.Add([]byte(`{"type":"task-command","id":"c","senderId":"1.2","senderRole":"leader","mentions":"all",` +
		`"command":"get","taskId":"t","commandParams":{"lastCommandSentAt":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"type":"group-mgmt-command","senderId":"1.2","groupId":"g","command":"disband","mentions":["all"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := ReadGroupMessage(slices.Clone(body), jsonrpc.Limits{})
		switch {
		case err != nil:
			if k := task.KindOf(err); k != task.InvalidParams && k != task.ParseError {
				t.Fatal(err)
			}
		case m.Kind == TaskCommand:
			call, err := m.Command("g")
			if err != nil {
				if task.KindOf(err) != task.InvalidParams {
					t.Fatal(err)
				}
				return
			}
			if c := &call.Message; c.TaskID == "" || c.SenderID == "" || c.GroupID == "" || !c.Command.Valid() {
				t.Fatalf("%+v", c)
			}
			again, err := ReadGroupMessage(form.AppendMessage(nil, &call.Message), jsonrpc.Limits{})
			if err != nil || again.Kind != TaskCommand || again.For("me") != m.For("me") {
				t.Fatalf("%+v, %v", again, err)
			}
		case m.Kind == MemberCommand:
			c, err := m.Management()
			if err == nil && (c.Command == "" || c.SenderID == "") {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// TestGroupMessagesOfTheSDK reads messages of the SDK of v02 with null not left out, and with its times.
func TestGroupMessagesOfTheSDK(t *testing.T) {
	const begin = `"sentAt":"2026-01-02T03:04:05.678901+00:00","senderRole":"leader","senderId":"1.2.156.L",`
	m := readGroup(t, []byte(`{"type":"task-command","id":"cmd-1",`+begin+`"mentions":null,"dataItems":[{"type":"text",`+
		`"metadata":null,"text":"hi"}],"groupId":"group-1","sessionId":"s","command":"start","commandParams":null,`+
		`"taskId":"task-1"}`))
	call, err := m.Command("group-1")
	want := task.Message{ID: "cmd-1", SentAt: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC), SenderRole: task.Leader,
		SenderID: "1.2.156.L", Command: task.Start, DataItems: []task.DataItem{task.Text("hi")}, TaskID: "task-1",
		GroupID: "group-1", SessionID: "s"}
	if d := cmp.Diff(want, call.Message); d != "" || err != nil || !m.For("1.2.156.p") {
		t.Error(err, d)
	}
	for _, mentions := range []string{`"all"`, `["1.2.156.P"]`} {
		m := readGroup(t, []byte(`{"type":"group-mgmt-command","id":"mgmt-cmd-1",`+begin+`"mentions":`+mentions+
			`,"dataItems":[],"groupId":"group-1","sessionId":null,"command":"disband"}`))
		if c, err := m.Management(); err != nil || c.Command != task.Disband || c.SessionID != "" || !m.For("1.2.156.P") {
			t.Errorf("%+v, %v", c, err)
		}
	}
	// A member leaving by itself publishes a command of its own, for no one else.
	m = readGroup(t, []byte(`{"type":"group-mgmt-command","id":"c","sentAt":"2026-01-02T03:04:05+00:00",`+
		`"senderRole":"partner","senderId":"1.2.156.Q","mentions":["1.2.156.Q"],"groupId":"g","command":"leave-group"}`))
	if m.Kind != OtherMessage || m.SenderID != "1.2.156.Q" {
		t.Errorf("%+v", m)
	}
}
