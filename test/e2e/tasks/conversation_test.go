// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// remembering is an agent of A2A, of any version, that counts what it remembers of a conversation: each message and
// each answer of its own.
type remembering struct {
	names   bool // it answers by contexts of its own, and knows no others
	refuses bool // and it refuses others, instead of beginning one of its own

	mu    sync.Mutex
	holds map[string]int
	refs  []string // the tasks to which messages referred, as they came
}

func (a *remembering) answer(w http.ResponseWriter, r *http.Request, h site.Heard) {
	params := gjson.GetBytes(h.Body, "params")
	if !params.Exists() { // HTTP+JSON
		params = gjson.ParseBytes(h.Body)
	}
	id := string(h.ID)
	if id == "" {
		id = "null"
	}
	if !params.Get("message").Exists() {
		site.WriteError(w, h, -32001, "Task not found")
		return
	}
	session := params.Get("message.contextId").Str + params.Get("sessionId").Str
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ref := range params.Get("message.referenceTaskIds").Array() {
		a.refs = append(a.refs, ref.Str)
	}
	if _, known := a.holds[session]; !known && a.names {
		if session != "" && a.refuses {
			w.Header().Set("Content-Type", "application/json")
			if h.Method == "" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"contextId is not known"}}`)
				return
			}
			site.WriteError(w, h, -32602, "contextId is not known")
			return
		}
		session = "own-" + rand.Text()
	}
	a.holds[session]++
	holds := a.holds[session]
	a.holds[session]++
	name := params.Get("id").Str
	if name == "" {
		name = "task-" + rand.Text()
	}
	state, result := "completed", `%s`
	if h.Method == "" || strings.HasPrefix(h.Method, "Send") {
		state, result = "TASK_STATE_COMPLETED", `{"task":%s}`
	}
	result = fmt.Sprintf(result, fmt.Sprintf(`{"id":%q,"contextId":%q,"sessionId":%[2]q,"status":{"state":%q},`+
		`"artifacts":[{"artifactId":"a","parts":[{"text":"%d"}]}]}`, name, session, state, holds))
	w.Header().Set("Content-Type", "application/json")
	if h.Method == "" {
		fmt.Fprint(w, result)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// conversing are callers of a dialect. Each sends a message in a session, and returns how much the agent has said that
// it remembers, and the session as the gateway names it.
var conversing = map[string]func(c *site.Caller, session string) (holds, as string){
	"a2a/0.3": func(c *site.Caller, session string) (holds, as string) {
		return conversed(c, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{`+
			`"kind":"message","messageId":%q,"role":"user","contextId":%q,"parts":[{"kind":"text","text":"hi"}]}}}`,
			rand.Text(), session), "result.artifacts.0.parts.0.text", "result.contextId")
	},
	"a2a/1.0": func(c *site.Caller, session string) (holds, as string) {
		return conversed(c, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{`+
			`"messageId":%q,"role":"ROLE_USER","contextId":%q,"parts":[{"text":"hi"}]}}}`, rand.Text(), session),
			"result.task.artifacts.0.parts.0.text", "result.task.contextId", "A2A-Version", "1.0")
	},
	"agentapi": func(c *site.Caller, session string) (holds, as string) {
		return conversed(c, "/process", fmt.Sprintf(`{"input":[{"role":"user","type":"message","content":[{"type":"text",`+
			`"text":"hi"}]}],"stream":false,"session_id":%q}`, session), "output.0.content.0.text", "session_id")
	},
	"aip": func(c *site.Caller, session string) (holds, as string) {
		got := c.Send(site.InSession("task-"+rand.Text(), session, "hi"))
		return strings.Join(site.Product(got), ""), got.SessionID
	},
}

func conversed(c *site.Caller, path, body, holds, session string, header ...string) (string, string) {
	_, raw := c.Post(path, []byte(body), header...)
	if gjson.GetBytes(raw, holds).Str == "" {
		c.T.Errorf("%s: %s is answered with %s", c.Mount, body, raw)
	}
	return gjson.GetBytes(raw, holds).Str, gjson.GetBytes(raw, session).Str
}

// TestConversation: an agent remembers the tasks of one session as one conversation, whatever its dialect and that of
// its caller, also after a crash, and whether it takes the session's name or makes one. Another Leader with the same
// session has a conversation of its own.
//
// Promise: a Leader reads or changes a task of another Leader
func TestConversation(t *testing.T) {
	t.Parallel()
	var handle strings.Builder
	var mounts []string
	for _, dialect := range []string{"a2a/legacy", "a2a/0.3", "a2a/1.0", "a2a/1.0-rest"} {
		for name, of := range map[string]*remembering{
			"keeps": {}, "names": {names: true}, "refuses": {names: true, refuses: true},
		} {
			of.holds = make(map[string]int)
			agent := site.NewFakeAgent(t, of.answer)
			mount := "/" + dialect + "/" + name
			fmt.Fprintf(&handle, "\thandle_path %s* {\n\t\taip_gateway %s %s {\n\t\t\tcallers aip a2a agentapi\n\t\t}\n\t}\n",
				mount, dialect, agent.URL)
			mounts = append(mounts, mount)
		}
	}
	s := site.New(t)
	c := site.Config{Handle: handle.String()}
	s.Start(c)
	pki := site.Certificates(t)
	got := make(map[string][]string)
	sessions := make(map[string]string)
	say := func(who string, of devpki.File) {
		for _, mount := range mounts {
			c := site.CallerWith(t, s.URL()+mount, string(of.AIC), devpkitest.KeyPair(t, of))
			for dialect, send := range conversing {
				name := mount + " for " + dialect
				holds, as := send(c, sessions[name])
				sessions[name] = as
				got[who+name] = append(got[who+name], holds)
			}
		}
	}
	say("ann", pki.Leader)
	say("ann", pki.Leader)
	s.Kill()
	s.Start(c)
	say("ann", pki.Leader)
	say("bob", pki.LeaderV1)
	for name, holds := range got {
		want := []string{"1", "3", "5"}
		if strings.HasPrefix(name, "bob") {
			want = want[:1]
		}
		if diff := cmp.Diff(want, holds); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
