// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// aipRow is a row of a Leader of AIP: it leads a Partner by rule, and then the gateway with an agent that does the
// same.
type aipRow struct {
	name, set, notYet string
	partner           wildPartnerRule // of the Partner without the gateway

	// behind serves what the gateway fronts; default: an agent of A2A v0.1.
	behind func(*testing.T) *wildServed

	lead func(*wildLeader) error
	want wildEnd
}

func (r aipRow) row() wildRow {
	if r.behind == nil {
		r.behind = legacyWorker(false)
	}
	call := func(t *testing.T, at string) wildEnd {
		l := newWildLeader(t, at)
		if err := r.lead(l); err != nil {
			l.end.Broken = err.Error()
		}
		return l.end
	}
	return wildRow{name: r.name, set: r.set, notYet: r.notYet, want: r.want, ways: []wildWay{
		{name: "at the Partner", serve: partnerBy(r.partner), call: call},
		{name: "at the gateway", serve: r.behind, through: true, call: call},
	}}
}

// wildLeader is a Leader of AIP by rule. It shares no code with the gateway, and reads no more than such Leaders do.
type wildLeader struct {
	t        *testing.T
	ctx      context.Context // of its calls
	base     string          // of the paths rpc, stream and so on
	web      *http.Client
	sender   string
	v1       bool
	session  any // of its commands: a text, or nil for none
	task     string
	receiver string // the URL of its notifications
	last     int    // number of the last event of a stream
	peer     string // the name in the certificate that the server has shown last
	end      wildEnd
}

func newWildLeader(t *testing.T, at string) *wildLeader {
	l := &wildLeader{t: t, ctx: t.Context(), base: at, task: "task-" + rand.Text()}
	l.sender = string(site.Certificates(t).Leader.AIC)
	l.session = "session-" + l.task
	l.web = l.client()
	return l
}

// client returns a client of HTTP with connections of its own.
func (l *wildLeader) client() *http.Client {
	pki := site.Certificates(l.t)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: site.Trusted(l.t),
		Certificates: []tls.Certificate{devpkitest.KeyPair(l.t, pki.Leader)}}}
	l.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: site.Patience}
}

// anew begins another task of the same Leader.
func (l *wildLeader) anew() { l.task, l.last = "task-"+rand.Text(), 0 }

type wildItem struct{ Type, Text string }

// wildResult is a task, as far as Leaders read it, in either version.
type wildResult struct {
	Type, ID, TaskID, SenderID string
	Status                     struct {
		State     string
		DataItems []wildItem
	}
	Products []struct{ DataItems []wildItem }
}

func textOf(items []wildItem) string {
	text := ""
	for _, item := range items {
		text += item.Text
	}
	return text
}

// saw keeps a state in which the Leader has to act, or nothing follows.
func (l *wildLeader) saw(r *wildResult) {
	l.end.Settled = append(l.end.Settled, r.Status.State)
	l.products(r)
	if said := textOf(r.Status.DataItems); said != "" {
		l.end.Said = append(l.end.Said, said)
	}
}

// products keeps the products alone.
func (l *wildLeader) products(r *wildResult) {
	if len(r.Products) == 0 {
		return
	}
	l.end.Products = nil
	for _, product := range r.Products {
		l.end.Products = append(l.end.Products, textOf(product.DataItems))
	}
}

func (l *wildLeader) note(format string, args ...any) {
	l.end.Noted = append(l.end.Noted, fmt.Sprintf(format, args...))
}

// command returns a command. more replaces members, or adds to them; one that is nil is left out.
func (l *wildLeader) command(command, text string, more site.Object) site.Object {
	c := site.Object{"type": "task-command", "id": "cmd-" + rand.Text(), "command": command, "taskId": l.task,
		"sentAt": time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00"), "senderRole": "leader", "senderId": l.sender,
		"sessionId": l.session}
	if l.v1 {
		c["type"], c["dataItems"] = "message", []site.Object{}
	}
	if text != "" {
		c["dataItems"] = []site.Object{{"type": "text", "text": text}}
	}
	maps.Copy(c, more)
	maps.DeleteFunc(c, func(_ string, value any) bool { return value == nil })
	return c
}

// rpc sends a command and reads the task in its answer.
func (l *wildLeader) rpc(command, text string, more site.Object) (*wildResult, error) {
	member := "command"
	if l.v1 {
		member = "message"
	}
	raw, err := l.post("rpc", "rpc", site.Object{member: l.command(command, text, more)})
	if err != nil {
		return nil, err
	}
	r := new(wildResult)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	kind, id := "task-result", r.TaskID
	if l.v1 {
		kind, id = "task", r.ID
	}
	if r.Type != kind || id != l.task {
		return nil, fmt.Errorf("the answer to %s is %s", command, raw)
	}
	return r, nil
}

// errRefused is an answer that is an error, however it is written.
var errRefused = errors.New("refused")

// post sends a request to a path, and returns its result. As the reference's Leaders, it wants the status 200, no
// error, and the id of the request.
func (l *wildLeader) post(path, method string, params site.Object) (json.RawMessage, error) {
	id := rand.Text()
	res, err := l.send(path, site.Object{"jsonrpc": "2.0", "method": method, "id": id, "params": params},
		"application/json")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		ID            string
		Result, Error json.RawMessage
	}
	switch err := json.Unmarshal(body, &answer); {
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: HTTP %d %s", errRefused, res.StatusCode, body)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, body)
	case answer.Error != nil && string(answer.Error) != "null":
		return nil, fmt.Errorf("%w: %s", errRefused, answer.Error)
	case answer.ID != id:
		return nil, fmt.Errorf("the answer has the id %q", answer.ID)
	}
	return answer.Result, nil
}

func (l *wildLeader) send(path string, request site.Object, accept string) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(l.ctx, http.MethodPost, l.base+"/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", accept)
	res, err := l.web.Do(q)
	if err == nil && res.TLS != nil {
		l.peer = res.TLS.PeerCertificates[0].Subject.CommonName
	}
	return res, err
}

// stream sends a command by stream, as the newest reference does: only whole results count, and the first one that is
// settled ends it. It returns the last result, or nil where there was none.
func (l *wildLeader) stream(command, text string, more site.Object) (*wildResult, error) {
	res, err := l.send("stream", site.Object{"jsonrpc": "2.0", "method": "stream", "id": rand.Text(),
		"params": site.Object{"message": l.command(command, text, more)}}, "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: HTTP %d", errRefused, res.StatusCode)
	}
	var last *wildResult
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue // comments, and what is no stream
		}
		var event struct {
			Result struct {
				EventSeq  int
				EventData wildResult
			}
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, err
		}
		if event.Error != nil {
			return nil, fmt.Errorf("%w: %s", errRefused, event.Error)
		}
		if event.Result.EventSeq <= l.last {
			return nil, fmt.Errorf("the event %d comes after %d", event.Result.EventSeq, l.last)
		}
		l.last = event.Result.EventSeq
		if r := &event.Result.EventData; r.Type == "task-result" || l.v1 && r.Type == "task" {
			if last = r; settled(r.Status.State) {
				return r, nil
			}
		}
	}
	return last, lines.Err()
}

// poll asks for the task until it is settled.
func (l *wildLeader) poll() (*wildResult, error) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for limit := time.After(site.Patience); ; {
		r, err := l.rpc("get", "", nil)
		if err != nil || settled(r.Status.State) {
			return r, err
		}
		select {
		case <-again.C:
		case <-limit:
			return nil, errors.New("the task is not settled in time")
		}
	}
}

// get reads a document.
func (l *wildLeader) get(path string, into any) error {
	res, err := l.web.Get(l.base + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s is answered with HTTP %d", path, res.StatusCode)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
