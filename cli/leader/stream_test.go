// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// frames are a whole life: the task, its work, a product in pieces, and its end.
var frames = []string{
	`{"type":"task","id":"t1","status":{"state":"accepted","stateChangedAt":"2025-09-01T12:00:00+08:00"},"products":[],` +
		`"sessionId":"s"}`,
	`{"type":"status-update","taskId":"t1","status":{"state":"working","stateChangedAt":"2025-09-01T12:00:01+08:00"},` +
		`"sessionId":"s"}`,
	`{"type":"product-chunk","taskId":"t1","product":{"id":"p","dataItems":[{"type":"text","text":"one "}]},` +
		`"append":false,"lastChunk":false,"sessionId":"s"}`,
	`{"type":"product-chunk","taskId":"t1","product":{"id":"p","dataItems":[{"type":"text","text":"two"}]},` +
		`"append":true,"lastChunk":true,"sessionId":"s"}`,
	`{"type":"status-update","taskId":"t1","status":{"state":"awaiting-completion",` +
		`"stateChangedAt":"2025-09-01T12:00:02+08:00"},"sessionId":"s"}`,
	`{"type":"status-update","taskId":"t1","status":{"state":"completed","stateChangedAt":"2025-09-01T12:00:03+08:00"},` +
		`"sessionId":"s"}`,
}

// asked is the content of a request to the stream.
type asked struct {
	ID     json.RawMessage
	Params struct {
		Message struct {
			Command       string
			CommandParams struct{ LastEventSeq int }
		}
	}
}

// partnerThat serves streams, each as write says.
func partnerThat(t *testing.T, write func(out io.Writer, a *asked)) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := new(asked)
		if err := json.NewDecoder(r.Body).Decode(a); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, a)
	}))
	c, err := New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Sender = "leader"
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return c
}

func frame(a *asked, seq int) string {
	return fmt.Sprintf("id: %d\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"eventSeq\":%d,\"eventData\":%s}}\n\n",
		seq, a.ID, seq, frames[seq-1])
}

// follow gathers the yield of a stream: the numbers of its events, and the error at its end.
func follow(t *testing.T, c *Client, command task.Command, after uint64) (seqs []uint64, cuts int, err error) {
	t.Helper()
	call := &task.Call{Message: task.Message{Command: command, TaskID: "t1"}, AfterSeq: after}
	for ev, failed := range c.Follow(t.Context(), call, func(error) { cuts++ }) {
		if failed != nil {
			return seqs, cuts, failed
		}
		seqs = append(seqs, ev.Seq)
	}
	return seqs, cuts, nil
}

// TestMediaTypes: the media type of a stream is compared by its meaning.
func TestMediaTypes(t *testing.T) {
	for media, stream := range map[string]bool{
		"Text/Event-Stream": true, "text/event-stream;charset=UTF-8": true,
		"text/event-streams": false, "application/json": false, "": false,
	} {
		c := partnerThat(t, func(out io.Writer, a *asked) {
			out.(http.ResponseWriter).Header().Set("Content-Type", media)
			for seq := 1; seq <= len(frames); seq++ {
				io.WriteString(out, frame(a, seq))
			}
		})
		seqs, _, err := follow(t, c, task.Start, 0)
		if got := err == nil && len(seqs) == len(frames); got != stream {
			t.Errorf("%q: the stream brings %d events and %v", media, len(seqs), err)
		}
	}
}

// TestFollowComesBack cuts the stream after every byte of it, and then after every byte of the rest.
func TestFollowComesBack(t *testing.T) {
	var cutAt atomic.Int64
	c := partnerThat(t, func(out io.Writer, a *asked) {
		var all strings.Builder
		for seq := a.Params.Message.CommandParams.LastEventSeq + 1; seq <= len(frames); seq++ {
			all.WriteString(frame(a, seq))
		}
		content := all.String()
		if at := int(cutAt.Swap(-1)); at >= 0 && at < len(content) {
			io.WriteString(out, content[:at])
			out.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		io.WriteString(out, content)
	})
	for at := range 1100 {
		if at%13 != 0 {
			continue
		}
		cutAt.Store(int64(at))
		seqs, _, err := follow(t, c, task.Start, 0)
		if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5, 6}, seqs); diff != "" || err != nil {
			t.Fatalf("cut after %d bytes: error %v (-want +got):\n%s", at, err, diff)
		}
	}
}

func TestFollowDecodes(t *testing.T) {
	c := partnerThat(t, func(out io.Writer, a *asked) {
		for seq := range frames {
			io.WriteString(out, frame(a, seq+1))
		}
	})
	var fold task.Fold
	for ev, err := range c.Follow(t.Context(), &task.Call{Message: task.Message{Command: task.Start, TaskID: "t1"}},
		func(error) {}) {
		if err != nil {
			t.Fatal(err)
		}
		fold.Apply(ev.Event)
	}
	if fold.Seq != 6 || fold.Status().State != task.Completed || len(fold.Task().Products) != 1 ||
		fold.Task().Products[0].DataItems[0].Text != "one two" {
		t.Errorf("the events make %+v", fold.Task())
	}
}

func TestFollowRefusesDisorder(t *testing.T) {
	for name, order := range map[string][]int{"again": {1, 2, 2}, "back": {1, 3, 2}, "not from the beginning": {2}} {
		c := partnerThat(t, func(out io.Writer, a *asked) {
			for _, seq := range order {
				io.WriteString(out, frame(a, seq))
			}
		})
		if _, cuts, err := follow(t, c, task.Start, 0); !errors.Is(err, errOutOfOrder) || cuts != 0 {
			t.Errorf("%s: got error %v and %d cuts", name, err, cuts)
		}
	}
}

func TestFollowPassesGaps(t *testing.T) {
	c := partnerThat(t, func(out io.Writer, a *asked) {
		for _, seq := range []int{1, 3, 6} {
			io.WriteString(out, frame(a, seq))
		}
	})
	seqs, cuts, err := follow(t, c, task.Start, 0)
	if d := cmp.Diff([]uint64{1, 3, 6}, seqs); d != "" || cuts != 0 || err != nil {
		t.Errorf("%d cuts, %v (-want +got):\n%s", cuts, err, d)
	}
}

func TestFollowEnds(t *testing.T) {
	refusal := `data: {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Task not found",` +
		`"data":{"reason":"EVENTS_EXPIRED"}}}` + "\n\n"
	c := partnerThat(t, func(out io.Writer, a *asked) { io.WriteString(out, refusal) })
	var refused *Error
	if _, cuts, err := follow(t, c, task.ReStream, 2); !errors.As(err, &refused) || refused.Code != -32001 || cuts != 0 {
		t.Errorf("an error frame gave %v and %d cuts", err, cuts)
	}
	c = partnerThat(t, func(out io.Writer, a *asked) { io.WriteString(out, ": the task has ended\n\n") })
	if seqs, cuts, err := follow(t, c, task.ReStream, 6); len(seqs) != 0 || cuts != 0 || err != nil {
		t.Errorf("the stream of an ended task gave %v, %d cuts and %v", seqs, cuts, err)
	}
	c = partnerThat(t, func(io.Writer, *asked) { panic(http.ErrAbortHandler) })
	if _, cuts, err := follow(t, c, task.Continue, 0); err == nil || cuts != 0 {
		t.Errorf("a continue that was interrupted before its first event gave %v and %d cuts", err, cuts)
	}
}
