// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildLegacy has clients of A2A v0.1 and Leaders of AIP ask agents of A2A v0.1, all by rule.
func TestWildLegacy(t *testing.T) {
	t.Parallel()
	runWild(t, wildLegacy)
}

// legacyRow is a row of an agent of A2A v0.1: what its client gets from it by tasks/send and by tasks/sendSubscribe, a
// client gets through the gateway, and a Leader gets by rpc and by stream.
type legacyRow struct {
	name, set, notYet string
	answer            func(http.ResponseWriter, *http.Request, site.Heard) // of the agent, to each request

	program string   // in interop, in place of answer
	texts   []string // what it is told, in order; default: hello
	unary   bool     // it has no streams: its client asks for none
	endless bool     // a client that asks it directly sees no last state
	odd     bool     // the client by rule does not read it, its own does
	card    bool     // at its endpoint only; its dialect is to be found
	want    wildEnd
}

func (r legacyRow) row() wildRow {
	texts := r.told()
	client := func(method string) func(*testing.T, string) wildEnd {
		return func(t *testing.T, at string) wildEnd {
			l := newWildLeader(t, at)
			for _, text := range texts {
				if err := l.askLegacy(method, text); err != nil {
					l.end.Broken = err.Error()
				}
			}
			return l.end
		}
	}
	leader := func(tell func(l *wildLeader, command, text string) (*wildResult, error)) func(*testing.T, string) wildEnd {
		return func(t *testing.T, at string) wildEnd {
			l := newWildLeader(t, at)
			for i, text := range texts {
				if err := l.settledBy(tell(l, []string{"start", "continue"}[min(i, 1)], text)); err != nil {
					l.end.Broken = err.Error()
				}
			}
			if r.endless && slices.Equal(l.end.Said, []string{endlessRemark}) { // a stream has it, an answer by rpc has not
				l.end.Said = nil
			}
			for i, state := range l.end.Settled {
				l.end.Settled[i] = cmp.Or(inLegacy[state], state)
			}
			return l.end
		}
	}
	var ways []wildWay
	for _, through := range []bool{false, true} {
		for _, method := range []string{"tasks/send", "tasks/sendSubscribe"} {
			if through || !r.odd && (!r.unary && !r.endless || method == "tasks/send") {
				ways = append(ways, wildWay{name: fmt.Sprintf("%s, through %t", method, through), serve: r.serve, through: through,
					callers: "aip a2a", call: client(method)})
			}
		}
	}
	ways = append(ways,
		wildWay{name: "a Leader by rpc", serve: r.serve, through: true,
			call: leader(func(l *wildLeader, command, text string) (*wildResult, error) { return l.rpc(command, text, nil) })},
		wildWay{name: "a Leader by stream", serve: r.serve, through: true,
			call: leader(func(l *wildLeader, command, text string) (*wildResult, error) {
				return l.stream(command, text, nil)
			})})
	return wildRow{name: r.name, set: r.set, notYet: r.notYet, want: r.want, ways: ways}
}

// told is what its agent is told, in order.
func (r legacyRow) told() []string {
	if r.texts == nil {
		return helloTold
	}
	return r.texts
}

// serve serves its agent.
func (r legacyRow) serve(t *testing.T) *wildServed {
	if r.program != "" {
		url := site.RunAgent(t, site.SDKBinary(t, r.program))
		return &wildServed{at: url, as: "a2a/legacy " + url}
	}
	agent := site.NewFakeAgent(t, r.answer)
	served := &wildServed{at: agent.URL, as: "a2a/legacy " + agent.URL, told: func() (told []string) {
		for _, h := range agent.Requests("") {
			if h.Method == "tasks/send" || h.Method == "tasks/sendSubscribe" && !r.unary {
				told = append(told, h.Params.Message.Parts[0].Text)
			}
		}
		return told
	}}
	if r.card {
		served.at = behindCard(t, agent.URL)
		served.as = "a2a " + served.at
	}
	return served
}

// inLegacy has the words of A2A v0.1 for states of AIP.
var inLegacy = map[string]string{"awaiting-completion": "completed", "awaiting-input": "input-required"}

// legacyResult is a Task of A2A v0.1, or an event.
type legacyResult struct {
	Status struct {
		State   string
		Message struct{ Parts []wildItem }
	}
	Final     bool
	Artifact  *legacyArtifact
	Artifacts []legacyArtifact
}

type legacyArtifact struct {
	Index *int
	Parts []wildItem
}

// askLegacy sends a message as the sample clients of A2A v0.1 do, and keeps what they show: the artifacts, or where
// there are none, what the agent says when it is done.
func (l *wildLeader) askLegacy(method, text string) error {
	res, err := l.send("", site.Object{"jsonrpc": "2.0", "id": rand.Text(), "method": method, "params": site.Object{
		"id": l.task, "sessionId": l.session,
		"message": site.Object{"role": "user", "parts": []site.Object{{"type": "text", "text": text}}}}}, "*/*")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var last legacyResult
	artifacts := make(map[int]string)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for !last.Final && lines.Scan() {
		line := lines.Bytes()
		if method == "tasks/sendSubscribe" {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if !ok {
				continue
			}
			line = data
		}
		var answer struct {
			Result legacyResult
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &answer); err != nil || answer.Error != nil {
			return fmt.Errorf("it is answered %s", line)
		}
		for i, a := range answer.Result.Artifacts {
			artifacts[i] = textOf(a.Parts)
		}
		if a := answer.Result.Artifact; a != nil {
			index := len(artifacts)
			if a.Index != nil {
				index = *a.Index
			}
			artifacts[index] = textOf(a.Parts)
		}
		if answer.Result.Status.State != "" {
			last = answer.Result
		}
	}
	l.end.Settled = append(l.end.Settled, last.Status.State)
	for i := range len(artifacts) {
		l.end.Products = append(l.end.Products, artifacts[i])
	}
	if said := textOf(last.Status.Message.Parts); said != "" && last.Status.State != "completed" {
		l.end.Said = []string{said}
	} else if said != "" && len(artifacts) == 0 {
		l.end.Products = []string{said}
	}
	return lines.Err()
}

// legacyAnswers answers a message by results: all of them as events of a stream, or the last one.
func legacyAnswers(results func(id string) []string) func(http.ResponseWriter, *http.Request, site.Heard) {
	return func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		all := results(h.Params.ID)
		switch h.Method {
		case "tasks/send":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, h.ID, all[len(all)-1])
		case "tasks/sendSubscribe":
			w.Header().Set("Content-Type", "text/event-stream")
			for _, result := range all[:len(all)-1] {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", h.ID, result)
			}
		default:
			site.WriteError(w, h, -32001, "Task not found")
		}
	}
}

// artifactAlone is a stream of an artifact, and the whole task.
func artifactAlone(id string) []string {
	return []string{`{"id":"` + id + `","artifact":` + doneArtifact + `}`,
		`{"id":"` + id + `","status":{"state":"completed"},"artifacts":[` + doneArtifact + `]}`}
}

const endlessRemark = "the agent has ended its stream without saying that it is done, and does not say how the task " +
	"stands"

// saysDone ends the streams of an agent as many models do.
func saysDone(answer func(http.ResponseWriter, *http.Request, site.Heard)) func(http.ResponseWriter, *http.Request,
	site.Heard) {
	return func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if answer(w, r, h); h.Method == "tasks/sendSubscribe" {
			io.WriteString(w, "data: [DONE]\n\n")
		}
	}
}

var legacyDone = wildEnd{Settled: []string{"completed"}, Products: []string{"done"}, Told: helloTold}

const doneArtifact = `{"name":"answer","index":0,"parts":[{"type":"text","text":"done"}]}`

var wildLegacy = slices.Concat(wildLegacyTurns, wildLegacyForms, wildLegacyCancels, []wildRow{
	legacyRow{
		name: "trpc-a2a-go 0.0.2", program: "trpc-00", texts: []string{"stream 4 5"},
		want: wildEnd{Settled: []string{"completed"}, Products: []string{"w0 w1 w2 w3 "}},
	}.row(),
	legacyRow{
		name: "trpc-a2a-go 0.0.2, which asks, and is answered", program: "trpc-00", texts: []string{"ask", "blue"},
		endless: true, // it leaves a stream open in which it asks
		want: wildEnd{Settled: []string{"input-required", "completed"}, Products: []string{"echo: blue"},
			Said: []string{"which colour?"}},
	}.row(),
	legacyRow{
		name: "trpc-a2a-go 0.0.2, which fails in mid-run", program: "trpc-00", texts: []string{"fail"},
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the model broke in mid-run"}},
	}.row(),
})

var wildLegacyTurns = []wildRow{
	legacyRow{
		name: "makes its own id of the task",
		answer: legacyAnswers(func(string) []string {
			return []string{
				`{"id":"mine","status":{"state":"working"},"final":false}`,
				`{"id":"mine","artifact":` + doneArtifact + `}`,
				`{"id":"mine","status":{"state":"completed"},"final":true}`,
				`{"id":"mine","status":{"state":"completed"},"artifacts":[` + doneArtifact + `]}`,
			}
		}),
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "streams its artifact after `completed`, and `completed` again",
		answer: legacyAnswers(func(id string) []string {
			return []string{
				`{"id":"` + id + `","status":{"state":"completed"},"final":false}`,
				`{"id":"` + id + `","artifact":` + doneArtifact + `}`,
				`{"id":"` + id + `","status":{"state":"completed"},"final":true}`,
				`{"id":"` + id + `","status":{"state":"completed"},"artifacts":[` + doneArtifact + `]}`,
			}
		}),
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "has artifacts without index and name",
		answer: legacyAnswers(func(id string) []string {
			one, two := `{"parts":[{"type":"text","text":"one"}]}`, `{"parts":[{"type":"text","text":"two"}]}`
			return []string{
				`{"id":"` + id + `","artifact":` + one + `}`,
				`{"id":"` + id + `","artifact":` + two + `}`,
				`{"id":"` + id + `","status":{"state":"completed"},"final":true}`,
				`{"id":"` + id + `","status":{"state":"completed"},"artifacts":[` + one + `,` + two + `]}`,
			}
		}),
		want: wildEnd{Settled: []string{"completed"}, Products: []string{"one", "two"}, Told: helloTold},
	}.row(),
	legacyRow{
		name:    "ends its stream without a last state, and knows nothing of the task afterwards",
		answer:  legacyAnswers(artifactAlone),
		endless: true,
		want:    legacyDone,
	}.row(),
	legacyRow{
		name:    "ends its stream by `[DONE]` without a last state, and knows nothing of the task afterwards",
		answer:  saysDone(legacyAnswers(artifactAlone)),
		endless: true,
		want:    legacyDone,
	}.row(),
	legacyRow{
		name: "ends its stream by `final: true` while it works, and knows nothing of the task afterwards",
		answer: legacyAnswers(func(id string) []string {
			events := artifactAlone(id)
			return slices.Insert(events, 1, `{"id":"`+id+`","status":{"state":"working"},"final":true}`)
		}),
		endless: true,
		want:    legacyDone,
	}.row(),
	legacyRow{
		name: "has no streams, and says so by an error",
		answer: func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			if h.Method == "tasks/send" {
				site.WriteTask(w, h, "completed", "done")
				return
			}
			site.WriteError(w, h, -32601, "Method not found")
		},
		unary: true,
		want:  legacyDone,
	}.row(),
	legacyRow{
		name: "answers in the message of its status",
		answer: legacyAnswers(func(id string) []string {
			status := `{"state":"completed","message":{"role":"agent","parts":[{"type":"text","text":"done"}]}}`
			return []string{`{"id":"` + id + `","status":` + status + `,"final":true}`,
				`{"id":"` + id + `","status":` + status + `}`}
		}),
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "asks",
		answer: legacyAnswers(func(id string) []string {
			status := `{"state":"input-required","message":{"role":"agent","parts":[{"type":"text","text":"What colour?"}]}}`
			return []string{`{"id":"` + id + `","status":` + status + `,"final":true}`,
				`{"id":"` + id + `","status":` + status + `}`}
		}),
		want: wildEnd{Settled: []string{"input-required"}, Said: []string{"What colour?"}, Told: helloTold},
	}.row(),
	legacyRow{
		name: "fails, and says why",
		answer: legacyAnswers(func(id string) []string {
			status := `{"state":"failed","message":{"role":"agent","parts":[{"type":"text","text":"the oven is broken"}]}}`
			return []string{`{"id":"` + id + `","status":` + status + `,"final":true}`,
				`{"id":"` + id + `","status":` + status + `}`}
		}),
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the oven is broken"}, Told: helloTold},
	}.row(),
}
