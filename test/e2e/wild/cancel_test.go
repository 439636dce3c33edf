// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// canceledRow is a row of an agent of A2A v0.1 that is canceled while it works. The caller asks for the task before it
// cancels, and afterwards.
func canceledRow(r legacyRow) wildRow {
	row := wildRow{name: r.name, want: wildEnd{Settled: []string{"canceled"}}}
	if r.program == "" {
		row.want.Told = r.told()
	}
	text := r.told()[0]
	client := func(method string) func(l, asks *wildLeader) error {
		return func(l, asks *wildLeader) error {
			return l.cancels(func() { asks.askLegacy(method, text) }, func() error {
				_, err := l.post("", "tasks/cancel", site.Object{"id": l.task})
				return err
			}, l.stateInLegacy)
		}
	}
	leader := func(ask func(asks *wildLeader)) func(l, asks *wildLeader) error {
		return func(l, asks *wildLeader) error {
			return l.cancels(func() { ask(asks) }, func() error {
				_, err := l.rpc("cancel", "", nil)
				return err
			}, l.state)
		}
	}
	for _, way := range []struct {
		name, callers  string
		unary, through bool
		call           func(l, asks *wildLeader) error
	}{
		{"tasks/sendSubscribe, through false", "aip a2a", false, false, client("tasks/sendSubscribe")},
		{"tasks/sendSubscribe, through true", "aip a2a", false, true, client("tasks/sendSubscribe")},
		{"tasks/send, through true", "aip a2a", true, true, client("tasks/send")},
		{"a Leader by rpc", "", true, true, leader(func(l *wildLeader) { l.rpc("start", text, nil) })},
		{"a Leader by stream", "", false, true, leader(func(l *wildLeader) { l.stream("start", text, nil) })},
	} {
		if way.unary && r.program != "" {
			continue // the program cannot stop what it has not been asked for by a stream
		}
		row.ways = append(row.ways, wildWay{name: way.name, serve: r.serve, through: way.through, callers: way.callers,
			call: func(t *testing.T, at string) wildEnd {
				l := newWildLeader(t, at)
				asks := *l
				if err := way.call(l, &asks); err != nil {
					l.end.Broken = err.Error()
				}
				return l.end
			}})
	}
	return row
}

// cancels asks, cancels the task when the agent works on it, and keeps how it stands then. What the question itself is
// answered is not looked at.
func (l *wildLeader) cancels(ask func(), cancel func() error, state func() (string, error)) error {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		ask()
	}()
	if _, err := l.reaches("working", state); err != nil {
		return err
	}
	if err := cancel(); err != nil {
		return err
	}
	is, err := l.reaches("canceled", state)
	if err != nil {
		return err
	}
	<-asked
	l.end.Settled = append(l.end.Settled, is)
	return nil
}

// reaches asks for the state of the task until it is as it should be, or the task has ended.
func (l *wildLeader) reaches(want string, state func() (string, error)) (string, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for limit := time.After(site.Patience); ; {
		is, err := state()
		switch {
		case err != nil && !errors.Is(err, errRefused): // which is of a task that is not known yet
			return "", err
		case is == want, ended(is):
			return is, nil
		}
		select {
		case <-again.C:
		case <-limit:
			return "", fmt.Errorf("the task is not %s in time, but %q: %w", want, is, err)
		}
	}
}

func (l *wildLeader) state() (string, error) {
	r, err := l.rpc("get", "", nil)
	if err != nil {
		return "", err
	}
	return r.Status.State, nil
}

func (l *wildLeader) stateInLegacy() (string, error) {
	raw, err := l.post("", "tasks/get", site.Object{"id": l.task})
	if err != nil {
		return "", err
	}
	var r legacyResult
	err = json.Unmarshal(raw, &r)
	return r.Status.State, err
}

// cancelable is an agent of A2A v0.1 that works until it is canceled, which it answers by a result of its own.
type cancelable struct {
	result string
	tasks  sync.Map // channels that are closed when the task is canceled, by ids
}

func (a *cancelable) answer(w http.ResponseWriter, r *http.Request, h site.Heard) {
	is, _ := a.tasks.LoadOrStore(h.Params.ID, make(chan struct{}))
	canceled := is.(chan struct{})
	state := "working"
	select {
	case <-canceled:
		state = "canceled"
	default:
	}
	switch {
	case h.Method == "tasks/sendSubscribe":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"id\":%q,\"status\":{\"state\":\"working\"}}}\n\n",
			h.ID, h.Params.ID)
		w.(http.Flusher).Flush()
		select {
		case <-canceled:
		case <-r.Context().Done():
		}
	case h.Method == "tasks/cancel":
		if state == "working" {
			close(canceled)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(h.ID)+`,"result":`+a.result+`}`)
	default:
		site.WriteTask(w, h, state, "")
	}
}

var wildLegacyCancels = []wildRow{
	canceledRow(legacyRow{name: "answers a cancel by null", answer: (&cancelable{result: `null`}).answer}),
	canceledRow(legacyRow{name: "answers a cancel by `{success}`",
		answer: (&cancelable{result: `{"success":true}`}).answer}),
	canceledRow(legacyRow{name: "answers a cancel by a word", answer: (&cancelable{result: `"canceled"`}).answer}),
	canceledRow(legacyRow{name: "trpc-a2a-go 0.0.2, which is canceled", program: "trpc-00", texts: []string{"slow 50"}}),
}
