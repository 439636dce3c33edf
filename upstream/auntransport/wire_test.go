// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

var update = flag.Bool("update", false, "write the golden files")

// recorder is a proxy before a gateway, recording the frames in both directions.
type recorder struct {
	*gateway
	agent *upstream.Agent // reached through the recorder

	mu     sync.Mutex
	record txtar.Archive
}

// record returns a recorder before g.
func record(t *testing.T, g *gateway) *recorder {
	r := &recorder{gateway: g}
	g.net.Serve("recorder.test", r)
	r.agent = g.process("ws://recorder.test/aun")
	return r
}

// frameDelay is the time of a frame of the client. Frames of the gateway until then come before it, so the order of the
// frames is always the same.
const frameDelay = time.Millisecond

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	client, err := websocket.Accept(w, q, nil)
	if err != nil {
		return
	}
	server, _, err := websocket.Dial(context.Background(), "ws://gw.test/aun",
		&websocket.DialOptions{HTTPClient: r.net.Client()})
	if err != nil {
		_ = client.CloseNow()
		return
	}
	var directions sync.WaitGroup
	directions.Go(func() { r.forward("> ", server, client, frameDelay) })
	directions.Go(func() { r.forward("< ", client, server, 0) })
	directions.Wait()
}

// forward records and forwards the frames of one direction until a connection ends, and ends both.
func (r *recorder) forward(mark string, to, from *websocket.Conn, delay time.Duration) {
	defer func() { _, _ = to.CloseNow(), from.CloseNow() }()
	from.SetReadLimit(aun.MaxFrame)
	for {
		kind, frame, err := from.Read(context.Background())
		if err != nil {
			return
		}
		if delay > 0 {
			r.pause(delay)
		}
		r.line(mark, frame)
		if to.Write(context.Background(), kind, frame) != nil {
			return
		}
	}
}

// random are the members with other values in each run: nonces, times, certificates, signatures and tokens.
var random = regexp.MustCompile(`("(?:[a-z_]*(?:nonce|signature|cert|token|_time|_at)|request_id)":)` +
	`(?:[0-9]+|"(?:[^"\\]|\\.)*")`)

// line adds a line to the record, without the values of each run.
func (r *recorder) line(mark string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.record.Files[len(r.record.Files)-1]
	f.Data = append(append(append(f.Data, mark...), random.ReplaceAll(text, []byte(`$1"*"`))...), '\n')
}

// awaitIdle waits until no more frames are sent.
func (r *recorder) awaitIdle() {
	r.pause(time.Second)
	synctest.Wait()
}

// begin begins a part of the record.
func (r *recorder) begin(name string) {
	r.awaitIdle()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Files = append(r.record.Files, txtar.File{Name: name})
}

// compare compares the record with a golden file.
func (r *recorder) compare(t *testing.T, golden string) {
	t.Helper()
	r.awaitIdle()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := txtar.Format(&r.record)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(bytes.TrimSpace(got))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

func (r *recorder) carryOut(t *testing.T, turn *agent.Turn, want string) agent.Ref {
	t.Helper()
	got, ref := carryOut(t, r.agent, turn)
	if got != want {
		t.Errorf("%s: %s, want %s", turn.Message.ID, got, want)
	}
	return ref
}

// The frames of the client of AUN for tasks.
func TestWire(t *testing.T) {
	withGateway(t, func(t *testing.T, _ *upstream.Agent, g *gateway) {
		r := record(t, g)
		defer r.agent.Close()

		r.begin("a connection and a task")
		r.carryOut(t, start("a", "echo hello"), "accepted working awaiting-completion result=hello")

		r.begin("a task that asks")
		ref := r.carryOut(t, start("b", "ask"), "accepted working awaiting-input which?")
		r.begin("its input")
		turn := start("c", "that one")
		turn.Ref, turn.From, turn.Message.Command = ref, task.AwaitingInput, task.Continue
		r.carryOut(t, turn, "working awaiting-completion result=that one")

		r.begin("a cancel")
		var canceled sync.WaitGroup
		canceled.Go(func() {
			r.pause(time.Second)
			turn := start("d", "slow 1h")
			turn.Ref.Task = "task_3"
			if rep, err := r.agent.Cancel(context.Background(), turn); err != nil || rep.State != task.Canceled {
				t.Errorf("%s, %v", rep.State, err)
			}
		})
		r.carryOut(t, start("d", "slow 1h"), "accepted working canceled")
		canceled.Wait()

		r.begin("a cut")
		var cut sync.WaitGroup
		cut.Go(func() {
			r.pause(time.Second)
			g.intercept(func(q *aun.Request) bool {
				if q.Method == "task.subscribe" { // the task ends before it is polled again
					g.work.Go(func() {
						r.pause(10 * time.Millisecond)
						g.finish("task_4", "late")
					})
				}
				return true
			})
			r.line("", []byte("(the connection breaks)"))
			g.net.Cut("gw.test")
		})
		r.carryOut(t, start("e", "slow 1h"), "accepted working awaiting-completion result=late")
		cut.Wait()

		r.begin("an error")
		turn = start("f", "")
		turn.Ref.Task = "task_9"
		if _, err := r.agent.Cancel(context.Background(), turn); task.KindOf(err) != task.TaskNotFound {
			t.Error(err)
		}
		r.compare(t, "testdata/tasks.txtar")
	})
}

// The frames for a task with an agent of messages only.
func TestWireOfMessages(t *testing.T) {
	withMessenger(t, func(t *testing.T, _ *upstream.Agent, g *messenger) {
		r := record(t, g.gateway)
		defer r.agent.Close()
		r.begin("a connection and a task")
		ref := r.carryOut(t, start("a", "one end"), "working awaiting-completion =one")
		r.begin("another turn of the task, without an end")
		turn := start("b", "two")
		turn.Ref, turn.From, turn.Message.Command = ref, task.AwaitingCompletion, task.Continue
		r.carryOut(t, turn, "working awaiting-completion =two")
		r.compare(t, "testdata/messages.txtar")
	})
}
