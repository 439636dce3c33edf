// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// tailPause is how long the command waits before it follows again, when its stream was interrupted.
const tailPause = time.Second

func tailTasksCommand() *cobra.Command {
	var filter taskFlags
	t := tail{after: -1}
	cmd := &cobra.Command{
		Use:   "tail [<task>] [--state <state>] [--after <event>] [--leader <aic>] [--partner <aic>]",
		Short: "Prints changes of tasks, or the events of one task, as they happen",
		Long: `
Prints the changes of state of all tasks as they happen, or the events of one task, until
it has ended. After a reload of Caddy it continues: with a task at the next event, without
one at the present, so that changes may be missing. Ctrl-C ends it.
`,
		Example: `  $ caddy aip tasks tail --state failed --state awaiting-input
  $ caddy aip tasks tail task-1 --after 0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.cmd = cmd
			t.out.w = cmd.OutOrStdout()
			t.query = filter.query()
			if len(args) == 0 {
				if t.after >= 0 {
					return errors.New("--after is for the events of one task")
				}
				return t.run()
			}
			if len(filter.states) > 0 {
				return errors.New("--state is for the changes of all tasks")
			}
			name, err := filter.find(&t.admin, args[0])
			if err != nil {
				return err
			}
			t.query = url.Values{"partner": {name.Partner}, "leader": {name.Leader}, "task": {name.Task}}
			return t.run()
		},
	}
	t.admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&filter.states, "state", nil, "pending, or a state of AIP; may be repeated")
	cmd.Flags().Int64Var(&t.after, "after", -1, "with a task: from the event after this number on; default: from now on")
	cmd.Flags().BoolVar(&t.json, "json", false, "print the JSON of the admin API, one change or event per line")
	return cmd
}

// tail is a caddy aip tasks tail.
type tail struct {
	cmd   *cobra.Command
	admin adminFlags
	query url.Values
	after int64 // the last event, with a task; -1 for the present one
	json  bool
	out   eventPrinter
}

// run prints what is streamed, until the task has ended or the gateway cannot be reached.
func (t *tail) run() error {
	for {
		ended, err := t.stream()
		if ended || err != nil {
			t.out.endText()
			return err
		}
		t.out.endText()
		t.cmd.PrintErrln("the stream was interrupted; following again")
		time.Sleep(tailPause)
	}
}

// stream prints one stream, and reports whether nothing can follow it.
func (t *tail) stream() (ended bool, err error) {
	if t.query.Has("task") && t.after < 0 { // from now on
		var page adminapi.EventPage
		q := url.Values{"partner": t.query["partner"], "leader": t.query["leader"], "task": t.query["task"], "limit": {"1"}}
		if _, err := t.admin.ask(http.MethodGet, adminapi.TaskEvents, q, nil, &page); err != nil {
			return false, err
		}
		t.after = int64(page.Task.Last)
	}
	if t.after >= 0 {
		t.query.Set("after", strconv.FormatInt(t.after, 10))
	}
	res, err := t.admin.request(http.MethodGet, adminapi.TailTasks, t.query, nil)
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
			err = t.print(&ev)
		}
		if err != nil || ev.Name == adminapi.TailEnd {
			return true, err
		}
	}
}

// print prints one event of a stream.
func (t *tail) print(ev *sseproxy.Event) error {
	switch ev.Name {
	case adminapi.TailChange:
		var c adminapi.TaskChange
		if err := json.Unmarshal(ev.Data, &c); err != nil {
			return err
		}
		if t.json {
			return t.out.raw(ev.Data)
		}
		_, err := fmt.Fprintf(t.out.w, "%s  %-19s  %s  %s  %s\n", stamp(c.Since), c.State, clean(c.Task), clean(c.Leader),
			clean(c.Partner))
		return err
	case adminapi.TailEvent:
		var e adminapi.Event
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			return err
		}
		t.after = int64(e.Seq)
		if t.json {
			return t.out.raw(ev.Data)
		}
		return t.out.stored([]adminapi.Event{e})
	case adminapi.TailLost:
		var lost adminapi.Lost
		if err := json.Unmarshal(ev.Data, &lost); err != nil {
			return err
		}
		t.out.endText()
		if lost.Changes > 0 {
			t.cmd.PrintErrf("%d changes are left out, because they were read too slowly\n", lost.Changes)
		} else {
			t.after = int64(lost.Events)
			t.cmd.PrintErrf("the events up to %d are left out, because they are no longer kept\n", lost.Events)
		}
	}
	return nil
}
