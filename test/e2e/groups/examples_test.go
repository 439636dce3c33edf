// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/tidwall/gjson"
)

// play is the play of the examples of AIP v01.00 §7.3: a Leader and three members, whose agents are on other projects'
// SDKs, but for the first.
type play struct {
	t *testing.T
	*site.GroupLeader
	members [3]*site.Member
}

// TestGroupExamples plays every example of AIP v01.00 §7.3, with the bytes that stand there.
func TestGroupExamples(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	_, sample := site.SampleAgent(t)
	reject, rejectArgs := site.SDKCommand(t, site.SDKAgents["a2a-go-03"]...)
	p := &play{t: t, GroupLeader: site.NewGroup(t, b, "group123", site.Certificates(t).LeaderV1)}
	for i, agent := range []struct{ dialect, address, path string }{
		{"a2a/legacy", sample, ""},
		{"a2a/legacy", strings.TrimSuffix(strings.TrimPrefix(site.TRPCAgent(t), "http://"), "/"), ""},
		{"a2a/0.3", strings.TrimPrefix(site.RunAgent(t, reject, rejectArgs...), "http://"), "/invoke"},
	} {
		p.members[i] = newMember(t, agent.dialect+" "+understands(t, i, agent.address)+agent.path, "localhost")
	}

	// (1) The Leader creates the group.
	for _, m := range p.members {
		var invitation struct{ Params site.Object }
		p.read("25-group-invite.request.json", &invitation)
		server := invitation.Params["server"].(map[string]any)
		server["host"], server["port"], server["vhost"], server["accessToken"] = p.Host, p.Port, p.VHost, p.Token
		invitation.Params["amqp"].(map[string]any)["exchange"] = p.Exchange
		joined, refused := p.Invite(m.CalledBy(p.Certificate), invitation.Params)
		if refused != nil || joined.VHost != p.VHost || joined.ConnectionName == "" || joined.NodeName == "" ||
			joined.QueueName == "" || joined.ProcessID == "" {
			t.Fatalf("the invitation is answered with %+v or %+v", joined, refused)
		}
	}

	// (2) to (5) A task for all: one works, one is done, one rejects.
	p.says("28-group-message-start.json")
	p.expect(0, "29-group-task-working.json")
	p.expect(1, "30-group-task-awaiting-completion.json")
	p.expect(2, "33-group-task-rejected.json")
	p.says("31-group-message-complete-mentions.json")
	p.expect(1, "32-group-task-completed.json")
	// (7) The cancel finds one at work; for the others the task has ended.
	p.says("35-group-message-cancel.json")
	p.expect(0, "36-group-task-canceled.json")
	// (6) An agent that fails.
	start := p.Command("start", "task-5679", "fails", p.members[0].AIC)
	start["sessionId"] = "session-91011"
	p.Send(start)
	p.expect(0, "34-group-task-failed.json", "task-5678", "task-5679")
	// (8) Another task, for one of them, which needs more input.
	start = p.Command("start", "task-7890", "asks", p.members[1].AIC)
	start["sessionId"] = "session-91011"
	p.Send(start)
	p.expect(1, "37-group-task-awaiting-input.json")
	before := len(p.Of(p.members[1].AIC, "task-7890"))
	p.says("38-group-message-continue-mentions.json")
	site.Eventually(t, "the task is continued", func() bool { return len(p.Of(p.members[1].AIC, "task-7890")) > before })
	p.like(p.Of(p.members[1].AIC, "task-7890")[before].Raw, "39-group-task-working-again.json")
	p.WaitForState(p.members[1].AIC, "task-7890", "awaiting-completion")
	// (9) One must leave.
	p.says("40-group-mgmt-leave.json")
	p.WaitForMember(p.members[0].AIC, 1)
	all := p.All(p.members[0].AIC)
	p.like(all[len(all)-1].Raw, "41-group-mgmt-member-status.json")
	site.Eventually(t, "its queue is gone", func() bool {
		queues, err := b.Queues(p.VHost)
		site.NoError(t, err)
		return len(queues) == 3
	})

	// What was said is what was done, and no member has done more.
	for i, tasks := range [][]string{{"task-5678", "task-5679"}, {"task-5678", "task-7890"}, {"task-5678"}} {
		for _, id := range tasks {
			p.Check(p.members[i], id)
		}
		for _, m := range p.All(p.members[i].AIC) {
			if id := m.Task(); id != "" && !slices.Contains(tasks, id) {
				t.Errorf("member %d has published %s", i+1, m.Raw)
			}
		}
		if again := p.Repeated(p.members[i].AIC); again != nil {
			t.Errorf("member %d has published %q again", i+1, again)
		}
	}
}

// understands returns the URL of an agent that does what its script is for what the examples say to it.
func understands(t *testing.T, i int, address string) string {
	t.Helper()
	scripts := []map[string]string{
		{"请帮我做": "slow 300 ", "fails": "fail"},
		{"请帮我做": "file ", "asks": "ask"},
		{"请帮我做": "reject "},
	}
	to := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if request := gjson.ParseBytes(body); request.Get("method").String() == "message/stream" {
			// Its streams say that it works before it rejects, and then AIP has no way back.
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"no streams"}}`, request.Get("id").Raw)
			return
		}
		for text, script := range scripts[i] {
			body = bytes.ReplaceAll(body, []byte(`"`+text), []byte(`"`+script))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// text returns an example with the names of this play.
func (p *play) text(name string, changes ...string) []byte {
	p.t.Helper()
	text, err := os.ReadFile("../../../translate/aip/testdata/vectors/" + name)
	site.NoError(p.t, err)
	return []byte(strings.NewReplacer(append(changes, "agent-leader-aic", p.AIC(), "agent-partner-1", p.members[0].AIC,
		"agent-partner-2", p.members[1].AIC, "agent-partner-3", p.members[2].AIC)...).Replace(string(text)))
}

func (p *play) read(name string, to any) {
	p.t.Helper()
	site.NoError(p.t, json.Unmarshal(p.text(name), to))
}

// says publishes an example.
func (p *play) says(name string) {
	p.t.Helper()
	p.Publish(p.text(name), amqp.Publishing{})
}

// expect waits until a member has published something like an example.
func (p *play) expect(i int, name string, changes ...string) {
	p.t.Helper()
	var want site.HeardMessage
	site.NoError(p.t, json.Unmarshal(p.text(name, changes...), &want))
	got := p.WaitForState(p.members[i].AIC, want.ID, want.Status.State)
	p.like(got.Raw, name, changes...)
	if len(want.Status.DataItems) > 0 && len(got.Status.DataItems) == 0 {
		p.t.Errorf("the status of %s is %s", name, got.Raw)
	}
	if want.Status.State == "awaiting-completion" && len(got.Products) == 0 {
		p.t.Errorf("%s has no products", got.Raw)
	}
}

// like compares a message with an example: it has the same members, and the same values but for times, ids of messages,
// and what the agents say.
func (p *play) like(got, name string, changes ...string) {
	p.t.Helper()
	plain := func(text []byte) (m map[string]any) {
		site.NoError(p.t, json.Unmarshal(text, &m))
		if m["type"] != "task" {
			m["id"] = "an id"
			m["sentAt"] = "a time"
		} else if status, ok := m["status"].(map[string]any); ok {
			status["stateChangedAt"] = "a time"
			delete(status, "dataItems")
			m["products"] = "the products"
		}
		return m
	}
	want := plain(p.text(name, changes...))
	if want["groupMemberStatus"] != nil { // the example leaves out what the reference code cannot read it without
		want["dataItems"], want["groupId"] = []any{}, p.ID
	}
	if diff := cmp.Diff(want, plain([]byte(got))); diff != "" {
		p.t.Errorf("beside %s (-want +got):\n%s", name, diff)
	}
}
