// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestPartnerBehindTLS has a gateway command a Partner as its Leader: over mTLS, with the certificate that it was
// given, and under the AIC in it.
func TestPartnerBehindTLS(t *testing.T) {
	agent := site.NewFakeAgent(t, nil)
	pki := site.Certificates(t)
	front := site.FreePort(t)
	at := func(client string) string {
		return fmt.Sprintf(`https://localhost:%d {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway {
		agent aip %%s {
			tls {
				ca %s
				%s
			}
		}
		aic %s
	}
}`, front, pki.Server.Cert, pki.Server.Key, pki.CA.Cert, pki.CA.Cert, client, pki.Leader.AIC)
	}
	s := site.New(t)
	config := site.Config{
		Handle: "aip_gateway a2a/legacy " + agent.URL + " {\n\t\tcallers aip a2a\n\t\tcompletion confirm\n\t}",
	}
	setSite := func(client string) { config.OtherSites = fmt.Sprintf(at(client), s.URL()) }

	client := fmt.Sprintf("client_cert %s %s\n", pki.Leader.Cert, pki.Leader.Key)
	setSite(client + fmt.Sprintf("aic %s", pki.Server.AIC))
	s.Start(config)
	c := site.LeaderOf(t, fmt.Sprintf("https://localhost:%d", front))
	got := c.Start("t1", "hello")
	if got.Status.State != task.AwaitingCompletion || len(got.Products) != 1 {
		t.Errorf("start answered %+v", got)
	}
	if got := c.GoOn("t1", "more"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("continue answered %+v", got)
	}
	c.Complete("t1")
	// The Partner behind has a task of its own, for the gateway, and gets the Leader's command.
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: site.Trusted(t),
			Certificates: []tls.Certificate{devpkitest.KeyPair(t, pki.Leader)}},
	}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: site.Patience}
	site.Eventually(t, "the Partner behind has completed its task", func() bool {
		res, err := web.Get(s.URL() + "/tasks")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var list struct {
			Tasks []struct {
				ID     string
				Status struct{ State string }
			}
		}
		if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID == "t1" {
			t.Fatalf("it has the tasks %+v, %v", list.Tasks, err)
		}
		return list.Tasks[0].Status.State == "TASK_STATE_COMPLETED"
	})

	for id, tls := range map[string]string{
		"without a certificate":              "server_name localhost",
		"where another Partner is meant":     client + "aic " + string(pki.LeaderV1.AIC),
		"where its name is meant, too":       client + "server_name x.example\nverify both\naic " + string(pki.Server.AIC),
		"where only the name of it is meant": client + "server_name x.example\nverify name",
	} {
		setSite(tls)
		if bad := s.Reload(config); bad != "" {
			t.Fatal(bad)
		}
		if diff := cmp.Diff(task.Failed, c.Start(id, "hello").Status.State); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// ruled is a Partner that a test rules. It answers a start by the state that the text of the start names, and each
// later command by the state that the test has set, with nulls for whatever it does not say, as the reference does.
type ruled struct {
	mu    sync.Mutex
	tasks map[string]ruledTask // by the name that the gateway gives them
}

// ruledTask is a task of a ruled Partner.
type ruledTask struct {
	state, says string
	since       time.Time
}

func (p *ruled) answer(w http.ResponseWriter, _ *http.Request, h site.Heard) {
	command, kind, id := gjson.GetBytes(h.Body, "params.command"), "task-result", "r"
	if !command.IsObject() {
		command, kind = gjson.GetBytes(h.Body, "params.message"), "task"
		id = command.Get("taskId").Str
	}
	if h.Method != "rpc" {
		site.WriteError(w, h, -32601, "Method not found")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	did, of := command.Get("command").Str, command.Get("taskId").Str
	now, known := p.tasks[of]
	switch {
	case did == "start" && !known:
		now = ruledTask{command.Get("dataItems.0.text").Str, "", time.Now()}
	case did == "continue":
		now = ruledTask{"working", "on it", time.Now()}
	case did == "complete" && now.state == "awaiting-completion":
		now = ruledTask{"completed", "", time.Now()}
	}
	p.tasks[of] = now
	items, products := "null", "null"
	if now.says != "" {
		items = fmt.Sprintf(`[{"type":"text","text":%q,"metadata":null}]`, now.says)
	}
	if strings.Contains(now.state, "complet") {
		products = `[{"id":"own-id","name":"own name","description":null,"dataItems":[{"type":"text","text":"done"}]}]`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"type":%q,"id":%q,"taskId":%q,"sessionId":"its own",`+
		`"groupId":null,"sentAt":null,"senderRole":"partner","senderId":"p","mentions":null,`+
		`"status":{"state":%q,"stateChangedAt":%q,"dataItems":%s},`+
		`"products":%s,"messageHistory":null,"statusHistory":null},"error":null}`,
		h.ID, kind, id, of, now.state, now.since.Format(time.RFC3339Nano), items, products)
}

// become has all tasks of the Partner be in a state.
func (p *ruled) become(state, says string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.tasks {
		p.tasks[id] = ruledTask{state, says, time.Now()}
	}
}

// unhurried is a bound for a Partner's work that no test waits for: a command that is held for it hangs.
const unhurried = "timeouts {\nresponse 10m\n}\n"

// TestPartnerBehindIsNotImproved holds that what a Partner answers is what its Leader gets through the gateway, when it
// gets it, in both versions of AIP.
func TestPartnerBehindIsNotImproved(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"aip", "aip/2"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			p := &ruled{tasks: make(map[string]ruledTask)}
			agent := site.NewFakeAgent(t, p.answer)
			s := site.Serve(t, site.Config{Handle: "aip_gateway " + dialect + " " + agent.URL + " {\n" + unhurried + "}"})
			l := site.LeaderOf(t, s.URL())

			for _, state := range []task.State{task.Accepted, task.Working, task.AwaitingInput, task.AwaitingCompletion,
				task.Completed, task.Rejected, task.Failed} {
				got := l.Start("answered-"+string(state), string(state))
				if got.Status.State != state {
					t.Errorf("a start that the Partner answers with %s is answered with %+v", state, site.AnswerOf(got))
				}
				if product := []string{"done"}; strings.Contains(string(state), "complet") && (len(got.Products) != 1 ||
					got.Products[0].ID != "own-id" || got.Products[0].Name != "own name" ||
					!cmp.Equal(site.AnswerOf(got).Products, product)) {
					t.Errorf("%s has the products %+v", state, got.Products)
				}
				site.CheckHistory(t, l.Get("answered-"+string(state)))
			}
			if got := l.GoOn("answered-awaiting-input", "more"); !cmp.Equal(site.Answered{State: task.Working, Says: "on it"},
				site.AnswerOf(got)) {
				t.Errorf("the continue is answered with %+v", site.AnswerOf(got))
			}

			p.become("awaiting-completion", "enjoy")
			for _, state := range []task.State{task.Accepted, task.Working, task.AwaitingInput} {
				got := l.Rests("answered-" + string(state))
				if want := (site.Answered{State: task.AwaitingCompletion, Says: "enjoy",
					Products: []string{"done"}}); state != task.AwaitingInput &&
					!cmp.Equal(want, site.AnswerOf(got)) {
					t.Errorf("what was %s has become %+v", state, site.AnswerOf(got))
				}
				site.CheckHistory(t, got)
			}
			if got := l.Complete("answered-working"); got.Status.State != task.Completed {
				t.Errorf("complete is answered with %+v", site.AnswerOf(got))
			}

			l.Start("late", "accepted")
			p.become("rejected", "not my job")
			got := l.Rests("late")
			if !cmp.Equal(site.Answered{State: task.Failed, Says: "not my job"}, site.AnswerOf(got)) {
				t.Errorf("what was rejected late is %+v", site.AnswerOf(got))
			}
			site.CheckHistory(t, got)
		})
	}
}

// TestPartnerBehindOtherCallers holds that callers of other dialects wait for a Partner behind the gateway to finish.
func TestPartnerBehindOtherCallers(t *testing.T) {
	t.Parallel()
	p := &ruled{tasks: make(map[string]ruledTask)}
	agent := site.NewFakeAgent(t, p.answer)
	s := site.Serve(t, site.Config{Handle: "aip_gateway aip/2 " + agent.URL + " {\ncallers aip a2a agentapi\n}"})
	client := site.LeaderOf(t, s.URL()).HTTP
	for name, send := range map[string]*http.Request{
		"A2A": site.JSONRequest("POST", s.URL(), `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{`+
			`"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"working"}]}}}`),
		"the Agent API": site.JSONRequest("POST", s.URL()+"/process",
			`{"stream":false,"input":[{"role":"user","content":[{"type":"text","text":"working"}]}]}`),
	} {
		before := agent.Commanded("rpc", "get")
		answer := make(chan string, 1)
		go func() {
			res, err := client.Do(send.WithContext(site.Within(t, site.Patience)))
			if err != nil {
				answer <- err.Error()
				return
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			answer <- string(body)
		}()
		site.Eventually(t, name+" is answered, or the Partner is polled", func() bool {
			return len(answer) > 0 || agent.Commanded("rpc", "get") > before+1
		})
		if len(answer) > 0 {
			t.Errorf("%s is answered before the Partner has finished: %s", name, <-answer)
			continue
		}
		p.become("awaiting-completion", "")
		if got := <-answer; !strings.Contains(got, "done") {
			t.Errorf("%s is answered with %s", name, got)
		}
	}
}

// TestKillAfterFirstAnswer kills the gateway when it has answered a start or continue by the first answer of its
// Partner: what was answered is stored, the Partner is polled on, and it has each command once. A stream has each event
// once.
func TestKillAfterFirstAnswer(t *testing.T) {
	t.Parallel()
	p := &ruled{tasks: make(map[string]ruledTask)}
	agent := site.NewFakeAgent(t, p.answer)
	s := site.New(t)
	c := site.Config{Handle: "aip_gateway aip/2 " + agent.URL + " {\ncallers aip aip/2\n" + unhurried + "}"}
	s.Start(c)
	l := site.LeaderOf(t, s.URL())
	if got := l.Start("accepted", "accepted"); got.Status.State != task.Accepted {
		t.Errorf("the start is answered with %+v", site.AnswerOf(got))
	}
	l.Start("asks", "awaiting-input")
	if got := l.GoOn("asks", "more"); got.Status.State != task.Working {
		t.Errorf("the continue is answered with %+v", site.AnswerOf(got))
	}
	stream := &site.Follower{Caller: l, ID: "streamed"}
	followed := make(chan error, 1)
	ctx := site.Within(t, site.ManyStreams)
	seen := make(chan struct{})
	go func() {
		err := stream.FollowTo(ctx, "accepted", "accepted")
		close(seen)
		if err == nil {
			err = stream.FollowTo(ctx, "accepted", "awaiting-completion")
		}
		followed <- err
	}()
	<-seen
	s.Kill()
	s.Start(c)
	for id, want := range map[string]task.State{"accepted": task.Accepted, "asks": task.Working} {
		got := l.Get(id)
		if got.Status.State != want {
			t.Errorf("after the crash %s is %+v", id, site.AnswerOf(got))
		}
		site.CheckHistory(t, got)
	}
	p.become("awaiting-completion", "enjoy")
	for _, id := range []string{"accepted", "asks"} {
		got := l.Rests(id)
		if want := (site.Answered{State: task.AwaitingCompletion, Says: "enjoy",
			Products: []string{"done"}}); !cmp.Equal(want, site.AnswerOf(got)) {
			t.Errorf("%s has become %+v", id, site.AnswerOf(got))
		}
		site.CheckHistory(t, got)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if got := l.Get("streamed"); len(stream.Events) != len(got.StatusHistory)+len(got.Products) {
		t.Errorf("the stream had %d events: %q", len(stream.Events), stream.Events)
	}
	starts, continues := agent.Commanded("rpc", "start"), agent.Commanded("rpc", "continue")
	if starts != 3 || continues != 1 {
		t.Errorf("the Partner has had %d starts and %d continues", starts, continues)
	}
}

// TestPartnerBehindACluster holds that the first answer of a Partner is the answer, too, where another gateway owns the
// tasks of the Leader than the one that it calls.
func TestPartnerBehindACluster(t *testing.T) {
	t.Parallel()
	p := &ruled{tasks: make(map[string]ruledTask)}
	agent := site.NewFakeAgent(t, p.answer)
	c := site.NewCluster(t, 3, "aip_gateway aip/2 "+agent.URL+" {\ncallers aip aip/2\n"+unhurried+"}", "")
	for i, s := range c.Gateways {
		l := site.LeaderOf(t, s.URL())
		id := fmt.Sprint("t", i)
		if got := l.Start(id, "working"); got.Status.State != task.Working {
			t.Errorf("gateway %d answers the start with %+v", i, site.AnswerOf(got))
		}
		p.become("awaiting-input", "which?")
		l.Rests(id)
		if got := l.GoOn(id, "more"); got.Status.State != task.Working {
			t.Errorf("gateway %d answers the continue with %+v", i, site.AnswerOf(got))
		}
		p.become("awaiting-completion", "enjoy")
		got := l.Rests(id)
		if want := (site.Answered{State: task.AwaitingCompletion, Says: "enjoy",
			Products: []string{"done"}}); !cmp.Equal(want, site.AnswerOf(got)) {
			t.Errorf("%s has become %+v", id, site.AnswerOf(got))
		}
		site.CheckHistory(t, got)
	}
	starts, continues := agent.Commanded("rpc", "start"), agent.Commanded("rpc", "continue")
	if starts != 3 || continues != 3 {
		t.Errorf("the Partner has had %d starts and %d continues", starts, continues)
	}
}

// TestCompletionAuto holds that with completion auto a task is completed as soon as its agent has finished, also for a
// Leader of AIP, and that a Partner behind is informed.
func TestCompletionAuto(t *testing.T) {
	t.Parallel()
	p := &ruled{tasks: make(map[string]ruledTask)}
	behind, agent := site.NewFakeAgent(t, p.answer), site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: fmt.Sprintf(`aip_gateway /partner* aip/2 %s {
		completion auto
	}
	aip_gateway /agent* a2a/legacy %s {
		completion auto
	}
	aip_gateway a2a/legacy %s`, behind.URL, agent.URL, agent.URL)})
	for mount, want := range map[string]task.State{
		"/partner": task.Completed, "/agent": task.Completed, "": task.AwaitingCompletion,
	} {
		l := site.LeaderOf(t, s.URL()+mount)
		id := "t" + mount
		if got := l.Start(id, "awaiting-completion"); got.Status.State != want ||
			!cmp.Equal([]string{"done"}, site.Product(got)) {
			t.Errorf("at %q the start is answered with %+v", mount, site.AnswerOf(got))
		}
		site.CheckHistory(t, l.Get(id))
	}
	site.Eventually(t, "the Partner behind has its task completed",
		func() bool { return behind.Commanded("rpc", "complete") == 1 })
}
