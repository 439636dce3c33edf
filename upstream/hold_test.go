// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// slowly answers with a stream of lines, and pauses between them; then it ends, or stays.
func slowly(stays bool, lines ...any) step {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			switch l := l.(type) {
			case time.Duration:
				pass(r, l)
			case string:
				io.WriteString(w, l+"\n\n")
				w.(http.Flusher).Flush()
			}
		}
		if stays {
			<-r.Context().Done()
		}
	}
}

// TestEndOfAStream: a turn ends with a final status, with the stream, or a short time after a settled state. All events
// before then count. The settled state is reported last, once, with its words.
func TestEndOfAStream(t *testing.T) {
	const pause = 200 * time.Millisecond
	event := func(s string) string { return "data: " + s }
	art := func(s string) string { return event(chunk(s, false)) }
	status := func(state string, final bool, words string) string { return event(said(state, final, words)) }
	var beats []any
	for range 100 {
		beats = append(beats, ": beat", pause)
	}
	var pings []any
	for range 100 {
		pings = append(pings, "event: ping\ndata: {}", pause)
	}
	for name, tc := range map[string]struct {
		stays bool
		lines []any
		want  []string // the reports, with their words
		took  time.Duration
	}{
		"final": {true, []any{status("completed", true, "done")}, []string{"completed: done"}, 20 * time.Millisecond},
		"an artifact after completed": {true,
			[]any{status("completed", false, "done"), pause, art("a"), pause, status("completed", true, "")},
			[]string{"artifact-0+=a", "completed: done"}, 2*pause + 20*time.Millisecond},
		"all of it at once": {false,
			[]any{status("working", false, "hm") + "\n\n" + status("completed", false, "done") + "\n\n" + art("a") +
				"\n\n" + status("completed", true, "")},
			[]string{"working: hm", "completedartifact-0+=a: done"}, 0},
		"pieces after completed": {true,
			[]any{art("a"), pause, status("completed", false, "done"), pause, event(chunk("b", true)), pause,
				event(chunk("c", true)), pause, status("completed", true, "")},
			[]string{"artifact-0+=a", "artifact-0+=b", "artifact-0+=c", "completed: done"}, 4*pause + 20*time.Millisecond},
		"another state": {true,
			[]any{status("completed", false, "done"), pause, status("input-required", true, "which one?")},
			[]string{"input-required: which one?"}, pause + 20*time.Millisecond},
		"a question on the way": {true,
			[]any{status("input-required", false, "may I?"), pause, status("working", false, ""), 5 * time.Second,
				art("a"), status("completed", true, "")},
			[]string{"working: may I?", "artifact-0+=a", "completed"}, pause + 5*time.Second + 20*time.Millisecond},
		"silence": {true, []any{status("completed", false, "done")}, []string{"completed: done"},
			2*time.Second + 20*time.Millisecond},
		"silence after a question": {true, []any{status("input-required", false, "which?"), pause, art("a")},
			[]string{"artifact-0+=a", "input-required: which?"}, pause + 2*time.Second + 20*time.Millisecond},
		"the end": {false, []any{status("completed", false, "done"), pause}, []string{"completed: done"}, pause},
		"beats": {true, append([]any{status("completed", false, "done")}, beats...), []string{"completed: done"},
			2*time.Second + 20*time.Millisecond},
		"pings": {true, append([]any{status("completed", false, "done")}, pings...), []string{"completed: done"},
			2*time.Second + 20*time.Millisecond},
		"a whole task, and an artifact": {true,
			[]any{event(is("completed", has("a"))), pause, event(`{"id":"1","result":{"id":"t","artifact":{"index":1,` +
				`"parts":[{"text":"b"}]}}}`), pause, status("completed", true, "done")},
			[]string{" artifact-0=a", "artifact-1+=b", "completed: done"}, 2*pause + 20*time.Millisecond},
		"a whole task, and its end": {true,
			[]any{event(is("completed", has("a"))), pause, status("completed", true, "done")},
			[]string{"completed artifact-0=a: done"}, pause + 20*time.Millisecond},
	} {
		for _, method := range []string{"sendSubscribe", "send"} {
			withAgent(t, script{method: slowly(tc.stays, tc.lines...)}.handler(), nil,
				func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
					begun := time.Now()
					var got []string
					var ends int
					for rep, err := range a.Run(t.Context(), turn("x"), method == "sendSubscribe") {
						says := one(rep, err)
						for _, it := range rep.Items {
							says += ": " + it.Text
						}
						if got = append(got, says); rep.EndsTurn() {
							ends++
						}
					}
					if diff := cmp.Diff(tc.want, got); diff != "" || ends != 1 {
						t.Errorf("%s, by %s: %d ends (-want +got):\n%s", name, method, ends, diff)
					}
					if took := time.Since(begun); took > tc.took+20*time.Millisecond || took < tc.took-20*time.Millisecond {
						t.Errorf("%s, by %s: it took %v, want %v", name, method, took, tc.took)
					}
				})
		}
	}
}

// TestEndOfADrainedStream: a question may be answered by a stream. It is read to the end of the turn, too.
func TestEndOfADrainedStream(t *testing.T) {
	for name, get := range map[string]step{
		"final": slowly(true, "data: "+said("completed", false, "done"), "data: "+chunk("a", false),
			"data: "+said("completed", true, "")),
		"silence": slowly(true, "data: "+said("completed", false, "done"), "data: "+chunk("a", false)),
	} {
		withAgent(t, script{"get": get}.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			var last agent.Report
			for rep, err := range a.Resume(t.Context(), turn("x")) {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				last = rep
			}
			if last.State != task.AwaitingCompletion || len(last.Products) != 1 || len(last.Items) != 1 {
				t.Errorf("%s: %+v", name, last)
			}
		})
	}
}
