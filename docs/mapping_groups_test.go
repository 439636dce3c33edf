// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// groupDialects are the dialects of the messages of groups.
var groupDialects = []string{mappedServers[inAIP].Name(), mappedServers[inAIP2].Name()}

// groupMessage reads a message of a group.
func groupMessage(t *testing.T, body string) aip.GroupMessage {
	t.Helper()
	m, err := aip.ReadGroupMessage([]byte(body), jsonrpc.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// TestDocsMappingGroupMessages: every message has the type that the page says.
func TestDocsMappingGroupMessages(t *testing.T) {
	for _, row := range tables(pages(t)["docs/mapping.md"], header("message", "aip", "aip/2"))[:4] {
		for i, cell := range row[1:] {
			words := strings.Split(cell, "`")
			body := fmt.Sprintf(`{"type":%q,"senderId":"L","taskId":"T","groupId":"G",%q:"get-status"}`, words[1], words[3])
			m := groupMessage(t, body)
			want := map[string]aip.GroupKind{"command for a task": aip.TaskCommand,
				"command for members": aip.MemberCommand}[row[0]]
			if m.Kind != want || want != aip.OtherMessage && m.Dialect != groupDialects[i] {
				t.Errorf("%s: kind %d of %s: %s", row[0], m.Kind, m.Dialect, body)
			}
		}
	}
}

// TestDocsMappingMentions: whom a command is for does not depend on the dialect.
func TestDocsMappingMentions(t *testing.T) {
	of := func(at int, members bool, mentions ...string) (cell string) {
		for _, m := range mentions {
			body := `{"senderId":"L","taskId":"T","groupId":"G","command":"get","groupMgmtCommand":"mute",`
			switch {
			case members:
				body += [...]string{`"type":"group-mgmt-message"`, `"type":"group-mgmt-command"`}[at]
			default:
				body += [...]string{`"type":"message"`, `"type":"task-command"`}[at]
			}
			if m != "" {
				body += `,"mentions":` + m
			}
			message := groupMessage(t, body+"}")
			this := "no member"
			switch {
			case message.For("P") && message.For("Q"):
				this = "all members"
			case message.For("P") && message.For("p"):
				this = "the member P"
			}
			if cell != "" && cell != this {
				t.Errorf("%v do not mean the same", mentions)
			}
			cell = this
		}
		return cell
	}
	cells := func(mentions ...string) (cells [2]string) {
		for i, members := range []bool{false, true} {
			f := func(at int) string { return of(at, members, mentions...) }
			cells[i] = alike(t, f, inAIP, inAIP2)
		}
		return cells
	}
	got := [][2]string{cells("", "null", "[]"), cells(`"all"`, `["all"]`), cells(`["P"]`)}
	want := [][2]string{
		{"all members", "no member"}, {"all members", "all members"}, {"the member P", "the member P"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members of commands for a task and for members (-want +got):\n%s", diff)
	}
	says(t, "`mentions` list AICs, without regard to case, or are `\"all\"`; without them (missing, `null`, `[]`) a "+
		"command for a task means all members, one for members none.")
}

// TestDocsMappingPublications: what a member publishes is what the page shows.
func TestDocsMappingPublications(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 8*60*60))
	state := task.Task{ID: "T", SessionID: "S", Status: task.Status{State: task.Working, ChangedAt: at}}
	shown := func(body []byte) string {
		s := strings.ReplaceAll(string(body), "2026-01-02T03:04:05+08:00", "…")
		return quoted(strings.ReplaceAll(s, `{"state":"working","stateChangedAt":"…"}`, "{}"))
	}
	want := [][]string{{"a task"}, {"the status of a member"}}
	for _, dialect := range groupDialects {
		f := aip.GroupForm{Dialect: dialect, AIC: "P", GroupID: "G"}
		want[0] = append(want[0], shown(f.AppendTask(nil, "M", &state)))
		want[1] = append(want[1], shown(f.AppendMemberStatus(nil, "M", at, "S", task.MemberStatus{Connected: true})))
	}
	got := tables(pages(t)["docs/mapping.md"], header("message", "aip", "aip/2"))[4:]
	for i, row := range want {
		if i >= len(got) || strings.Join(row, "|") != strings.Join(got[i], "|") {
			t.Errorf("docs/mapping.md should say\n%s", header(row...))
		}
	}
}

// bytesOf finds how long a member may be.
var bytesOf = regexp.MustCompile(`^(?:1 to|at most) (\d+) bytes`)

// TestDocsMappingInvitation: what the page says of each member holds, and so does what it says of its absence.
func TestDocsMappingInvitation(t *testing.T) {
	const least = `{"protocol":"rabbitmq:4.0","group":{"groupId":"G","leader":{"aic":"L"},"partners":[{"aic":"P"}]},` +
		`"server":{"host":"mq.example.com","port":5672,"vhost":"v","accessToken":"u:p"},` +
		`"amqp":{"exchange":"e","exchangeType":"direct","routingKey":"k"}}`
	invite := func(at int, params string) (translate.Call, error) {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"group","params":%s}`, params)
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		return mappedServers[at].Decode(&translate.Request{Request: req, HTTP: "POST", Groups: true})
	}
	rows := tables(pages(t)["docs/mapping.md"], header("member of params", "must be", "if missing"))
	if len(rows) != 11 {
		t.Errorf("%d members are explained", len(rows))
	}
	for _, row := range rows {
		path := strings.Trim(row[0], "`")
		for _, at := range []int{inAIP, inAIP2} {
			if _, err := invite(at, changed(t, least, path, map[string]any{})); task.KindOf(err) != task.InvalidParams {
				t.Errorf("%s may be an object: %v", path, err)
			}
			call, err := invite(at, changed(t, least, path, nil))
			switch in := call.Invitation; row[2] {
			case "refused":
				if task.KindOf(err) != task.InvalidParams {
					t.Errorf("%s may be missing: %v", path, err)
				}
			default:
				if err != nil {
					t.Errorf("%s must be there: %v", path, err)
					break
				}
				kept := map[string]string{"group.partners": "empty", "server.vhost": quoted(in.Server.VHost),
					"server.accessToken": "the certificate is used", "amqp.exchangeType": quoted(in.Exchange.Type),
					"amqp.routingKey": "empty"}
				if kept[path] != row[2] || len(in.Group.Partners) > 0 && path == "group.partners" {
					t.Errorf("%s that is missing is %s, and not %s", path, kept[path], row[2])
				}
			}
		}
		limit := bytesOf.FindStringSubmatch(row[1])
		if limit == nil {
			continue
		}
		most, err := strconv.Atoi(limit[1])
		if err != nil {
			t.Fatal(err)
		}
		for n, ok := range map[int]bool{most: true, most + 1: false} {
			if _, err := invite(inAIP, changed(t, least, path, strings.Repeat("x", n))); (err == nil) != ok {
				t.Errorf("%s of %d bytes: %v", path, n, err)
			}
		}
	}
	m := task.Membership{ConnectionName: "agent-P", VHost: "/", NodeName: "rabbit@mq", QueueName: "group_L_G_P",
		ProcessID: "pid-1", AIC: "P", GroupID: "G"}
	for _, at := range []int{inAIP, inAIP2} {
		out := mappedServers[at].(translate.GroupServer).AppendMembership(nil, jsonrpc.ID("1"), nil, &m)
		if answer := string(dig(out, "result")); !strings.Contains(pages(t)["docs/mapping.md"], "\n"+answer+"\n") {
			t.Errorf("docs/mapping.md should show the answer\n%s", answer)
		}
	}
}

// TestDocsMappingRefusals: the page shows the details of a failed connection.
func TestDocsMappingRefusals(t *testing.T) {
	err := task.Errorf(task.ConnectionFailed, "R").WithData("host", "H").WithData("port", 5672)
	for _, at := range []int{inAIP, inAIP2} {
		out := mappedServers[at].AppendError(nil, jsonrpc.ID("1"), err)
		says(t, quoted(string(dig(out, "error", "data", "details"))))
	}
}
