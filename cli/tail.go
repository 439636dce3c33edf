// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// tailPause is the wait of the command before it follows again after an interruption of its stream.
const tailPause = time.Second

// tailTasks prints changes of tasks, or the events of one task, as they happen.
func tailTasks(a *asking) func([]string) error {
	t := tail{asking: a, after: -1}
	a.Flags().Int64Var(&t.after, "after", -1, "with a task: from the event after this number on; default: from now on")
	a.jsonFlag(", one change or event per line")
	return func(args []string) (err error) {
		t.out.w, t.query = a.OutOrStdout(), a.query(a.route)
		switch {
		case len(args) == 0 && t.after >= 0:
			return errors.New("--after is for the events of one task")
		case len(args) == 0:
			return t.follow()
		case t.query.Has("state"):
			return errors.New("--state is for the changes of all tasks")
		}
		if t.query, err = eventsOf(a, args[0]); err != nil {
			return err
		}
		return t.follow()
	}
}

// tail is a caddy aip tasks tail.
type tail struct {
	*asking
	query url.Values
	after int64 // the last event, with a task; -1 for the present one
	out   eventPrinter
}

// follow prints the stream, until the task has ended or the gateway cannot be reached.
func (t *tail) follow() error {
	for {
		ended, err := t.stream()
		if ended || err != nil {
			t.out.endText()
			return err
		}
		t.out.endText()
		t.PrintErrln("the stream was interrupted; following again")
		time.Sleep(tailPause)
	}
}

// stream prints one stream, and reports whether nothing can follow it.
func (t *tail) stream() (ended bool, err error) {
	if t.query.Has("task") && t.after < 0 { // from now on
		var page adminapi.EventPage
		q := maps.Clone(t.query)
		q.Set("limit", "1")
		if _, err := t.ask(adminapi.RouteOf(adminapi.TaskEvents), q, nil, &page); err != nil {
			return false, err
		}
		t.after = int64(page.Task.Last)
	}
	if t.after >= 0 {
		t.query.Set("after", strconv.FormatInt(t.after, 10))
	}
	res, err := t.admin.request(http.MethodGet, t.route.Path, t.query, nil)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != "text/event-stream" {
		return false, errNoGateway
	}
	events := sseproxy.NewReader(res.Body, sseproxy.Limits{})
	for {
		ev, err := events.Next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err == nil {
			err = t.show(&ev)
		}
		if err != nil || ev.Name == adminapi.TailEnd {
			return true, err
		}
	}
}

// show prints one event of a stream.
func (t *tail) show(ev *sseproxy.Event) error {
	switch ev.Name {
	case adminapi.TailChange:
		var c adminapi.TaskChange
		if err := json.Unmarshal(ev.Data, &c); err != nil {
			return err
		}
		if t.asJSON {
			return t.out.raw(ev.Data)
		}
		_, err := fmt.Fprintf(t.out.w, "%s  %-19s  %s  %s  %s\n", stamp(c.Since), c.State, clean(c.Task), clean(c.Leader),
			agentOf(c.OfAgent, c.Partner))
		return err
	case adminapi.TailEvent:
		var e adminapi.Event
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			return err
		}
		t.after = int64(e.Seq)
		if t.asJSON {
			return t.out.raw(ev.Data)
		}
		return t.out.stored([]adminapi.Event{e})
	case adminapi.TailLost:
		var lost adminapi.Lost
		if err := json.Unmarshal(ev.Data, &lost); err != nil {
			return err
		}
		t.out.endText()
		switch {
		case lost.Changes > 0:
			t.PrintErrf("%d changes are left out, because they were not read in time\n", lost.Changes)
		case lost.Gateway != "":
			t.PrintErrf("changes at %s may be left out, because it has stopped, or was not reached for long\n",
				clean(lost.Gateway))
		default:
			t.after = int64(lost.Events)
			t.PrintErrf("the events up to %d are left out, because they are no longer kept\n", lost.Events)
		}
	}
	return nil
}
