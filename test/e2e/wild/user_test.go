// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// wildUser is a client of A2A 0.3 or 1.0 by rule, over JSON-RPC. It shares no code with the gateway, and has in the end
// what a person sees: the texts of artifacts, what the agent said, and how the task stands.
type wildUser struct {
	t       *testing.T
	at      string // the endpoint
	web     *http.Client
	v1      bool   // it speaks 1.0
	context string // the conversation, as the agent calls it
	task    string
	asks    gjson.Result // the last status in which the agent said something

	artifacts []wildArtifact
	said      []string
	state     string
}

type wildArtifact struct{ id, text string }

func newWildUser(t *testing.T, at string, v1 bool) *wildUser {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &wildUser{t: t, at: at, v1: v1, web: &http.Client{Transport: transport}}
}

// wildMethods are the methods of A2A 0.3, with those of 1.0.
var wildMethods = map[string]string{"message/send": "SendMessage", "message/stream": "SendStreamingMessage",
	"tasks/get": "GetTask", "tasks/cancel": "CancelTask"}

// call sends a request and yields its results: one, or those of a stream. An answer that is an error is one, too.
func (u *wildUser) call(ctx context.Context, method string, params site.Object) iter.Seq2[gjson.Result, error] {
	return func(yield func(gjson.Result, error) bool) {
		if u.v1 {
			method = wildMethods[method]
		}
		ctx, cancel := context.WithTimeout(ctx, 2*site.Patience)
		defer cancel()
		body, _ := json.Marshal(site.Object{"jsonrpc": "2.0", "id": rand.Text(), "method": method, "params": params})
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, u.at, bytes.NewReader(body))
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		if u.v1 {
			q.Header.Set("A2A-Version", "1.0")
		}
		res, err := u.web.Do(q)
		if err != nil {
			yield(gjson.Result{}, err)
			return
		}
		defer res.Body.Close()
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			answer, err := io.ReadAll(res.Body)
			if err == nil {
				yield(resultOf(res.StatusCode, answer))
			} else {
				yield(gjson.Result{}, err)
			}
			return
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
			// VoltAgent's own client takes the record separator off, too.
			if data = bytes.TrimLeft(data, " \x1e"); ok && len(data) > 0 && !yield(resultOf(res.StatusCode, data)) {
				return
			}
		}
		if lines.Err() != nil {
			yield(gjson.Result{}, lines.Err())
		}
	}
}

func resultOf(status int, answer []byte) (gjson.Result, error) {
	v := gjson.ParseBytes(answer)
	if failure := v.Get("error"); failure.Exists() && failure.Type != gjson.Null {
		return gjson.Result{}, wildError{failure.Get("code").Int(), failure.Get("message").String()}
	}
	if !v.Get("result").Exists() {
		return gjson.Result{}, fmt.Errorf("it is answered HTTP %d %s", status, site.Tail(string(answer), 500))
	}
	return v.Get("result"), nil
}

// wildError is an error of JSON-RPC.
type wildError struct {
	code    int64
	message string
}

func (e wildError) Error() string { return fmt.Sprintf("error %d: %s", e.code, e.message) }

// message returns the parameters of a message in the present conversation, to the present task if it asks.
func (u *wildUser) message(part site.Object) site.Object {
	m := site.Object{"messageId": rand.Text(), "role": "user", "kind": "message", "parts": []site.Object{part}}
	if u.v1 {
		m["role"] = "ROLE_USER"
		delete(m, "kind")
	}
	if u.context != "" {
		m["contextId"] = u.context
	}
	if u.state == "input-required" {
		m["taskId"] = u.task
	}
	u.artifacts, u.said, u.state, u.task = nil, nil, "", ""
	return site.Object{"message": m}
}

func (u *wildUser) text(text string) site.Object {
	part := site.Object{"kind": "text", "text": text}
	if u.v1 {
		delete(part, "kind")
	}
	return u.message(part)
}

// saw takes in a result.
func (u *wildUser) saw(v gjson.Result) {
	for _, kind := range []string{"task", "message", "statusUpdate", "artifactUpdate"} { // 1.0
		if inner := v.Get(kind); inner.IsObject() {
			v = inner
			break
		}
	}
	if id := v.Get("contextId").Str; id != "" {
		u.context = id
	}
	artifact, status := v.Get("artifact"), v.Get("status")
	switch {
	case artifact.Exists():
		u.task = v.Get("taskId").Str
		u.piece(artifact, v.Get("append").Bool())
		return
	case !status.Exists(): // a Message, which is an answer without a task
		u.say(site.ContentOf(v.Get("parts")))
		if u.state == "" {
			u.state = "completed"
		}
		return
	case v.Get("taskId").Exists():
		u.task = v.Get("taskId").Str
	default:
		u.task = v.Get("id").Str
		if all := v.Get("artifacts"); len(all.Array()) > 0 {
			u.artifacts = nil
			for _, one := range all.Array() {
				id := one.Get("artifactId").Str
				u.piece(one, slices.ContainsFunc(u.artifacts, func(a wildArtifact) bool { return a.id == id }))
			}
		}
	}
	u.state = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(status.Get("state").Str, "TASK_STATE_")), "_", "-")
	if status.Get("message").Exists() {
		u.asks = status
	}
	u.say(site.ContentOf(status.Get("message.parts")))
}

func (u *wildUser) piece(artifact gjson.Result, adds bool) {
	one := wildArtifact{artifact.Get("artifactId").Str, site.ContentOf(artifact.Get("parts"))}
	i := slices.IndexFunc(u.artifacts, func(a wildArtifact) bool { return a.id == one.id })
	switch {
	case i < 0:
		u.artifacts = append(u.artifacts, one)
	case adds:
		u.artifacts[i].text += one.text
	default:
		u.artifacts[i] = one
	}
}

func (u *wildUser) say(text string) {
	if text != "" && (len(u.said) == 0 || u.said[len(u.said)-1] != text) {
		u.said = append(u.said, text)
	}
}

// all takes in all results of a call.
func (u *wildUser) all(method string, params site.Object) error {
	for v, err := range u.call(u.t.Context(), method, params) {
		if err != nil {
			return err
		}
		u.saw(v)
	}
	return nil
}

// until takes in results until the agent has begun to work on a task that it names, and breaks the connection then.
func (u *wildUser) until(ready func() bool, method string, params site.Object) error {
	ctx, cut := context.WithCancel(u.t.Context())
	defer cut()
	for v, err := range u.call(ctx, method, params) {
		if err != nil {
			return err
		}
		if u.saw(v); ready() {
			return nil
		}
	}
	return errors.New("the stream has ended")
}

// rests asks for the task until nothing more comes.
func (u *wildUser) rests(limit time.Duration) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for late := time.After(limit); ; {
		u.artifacts, u.said = nil, nil
		if err := u.all("tasks/get", site.Object{"id": u.task}); err != nil || site.RestsIn(u.state) {
			return err
		}
		select {
		case <-again.C:
		case <-late:
			return fmt.Errorf("after %v the task is %s", limit, u.state)
		}
	}
}

// end returns what the user has, with the error that it has met.
func (u *wildUser) end(err error) wildEnd {
	end := wildEnd{}
	if u.state != "" {
		end.Settled = []string{u.state}
	}
	for _, artifact := range u.artifacts {
		if artifact.text != "" {
			end.Products = append(end.Products, short(withoutIDs(artifact.text)))
		}
	}
	said := u.said
	// Where an agent answers only while it works, the gateway has the answer in the last status once more, as a whole.
	if last := len(said) - 1; last > 0 && strings.Join(said[:last], "") == said[last] {
		said = said[:last]
	}
	for _, said := range said {
		end.Said = append(end.Said, short(withoutIDs(said)))
	}
	if err != nil {
		end.Broken = err.Error()
	}
	return end
}

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// withoutIDs makes texts equal that differ in the ids that an agent has made.
func withoutIDs(text string) string { return anyUUID.ReplaceAllString(text, "<id>") }
