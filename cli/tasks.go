// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// tasks are the tasks of the gateway.
var tasks = &listing[adminapi.TaskPage, adminapi.Task]{
	path:    adminapi.Tasks,
	what:    "tasks",
	entries: func(p *adminapi.TaskPage) ([]adminapi.Task, string) { return p.Tasks, p.Next },
	header:  "TASK\tSTATE\tSINCE\tEVENTS\tSIZE\tLEADER\tAGENT\tREASON",
	row: func(t *adminapi.Task) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", clean(t.Task), t.State, stamp(t.Since), t.Last,
			humanize.IBytes(uint64(t.Bytes)), clean(t.Leader), agentOf(t.OfAgent, t.Partner),
			clean(orDash(t.Reason)))
	},
	none:    "There is no such task.",
	name:    "task",
	missing: "there is no task %q; it may have ended and been dropped",
	several: "several tasks have this id; say which by --leader and --partner",
}

// eventsOf returns the parameters to select the events of the task named by an argument.
func eventsOf(a *asking, id string) (url.Values, error) {
	t, _, err := tasks.find(a, id)
	if err != nil {
		return nil, err
	}
	return url.Values{"partner": {t.Partner}, "leader": {t.Leader}, "task": {t.Task}}, nil
}

// showTask prints a task with its events.
func showTask(a *asking) func([]string) error {
	var after uint64
	var limit int
	a.Flags().Uint64Var(&after, "after", 0, "the events after the one with this number")
	a.Flags().IntVar(&limit, "limit", 1000, "the largest number of events")
	a.jsonFlag(", one page per line")
	return func(args []string) error {
		if limit < 1 {
			return errors.New("--limit must be above 0")
		}
		q, err := eventsOf(a, args[0])
		if err != nil {
			return err
		}
		out := eventPrinter{printer: printer{w: a.OutOrStdout()}}
		for printed := 0; ; {
			q.Set("after", strconv.FormatUint(after, 10))
			q.Set("limit", strconv.Itoa(min(limit-printed, 1000)))
			var page adminapi.EventPage
			raw, err := a.ask(a.route, q, nil, &page)
			if err != nil {
				return err
			}
			if a.asJSON {
				err = writeJSON(a.OutOrStdout(), raw)
			} else {
				if printed == 0 {
					out.overview(&page.Task)
					out.trace(page.Task.TraceID, page.TraceLink)
				}
				err = out.stored(page.Events)
			}
			if err != nil {
				return err
			}
			printed += len(page.Events)
			if page.Next == 0 {
				break
			}
			if after = page.Next; printed >= limit {
				if !a.asJSON {
					out.endText()
					out.line("next", "show with --after "+strconv.FormatUint(after, 10))
				}
				break
			}
		}
		out.endText()
		return out.err
	}
}

// overview prints a task without its contents.
func (p *printer) overview(t *adminapi.Task) {
	p.begin(t.Task)
	p.line("session", t.Session)
	p.line("agent", joined(t.AgentName, t.Partner))
	p.line("leader", t.Leader)
	p.line("state", string(t.State)+" since "+stamp(t.Since))
	events := fmt.Sprintf("%d to %d, %s", t.First, t.Last, humanize.IBytes(uint64(t.Bytes)))
	if t.First > t.Last {
		events = "none"
	}
	p.line("events", events)
}

// trace prints the trace of a task, and the link to it.
func (p *printer) trace(id, link string) {
	if id != "" {
		p.line("trace", strings.TrimSpace(id+"  "+link))
	}
}

// stored prints events as they are stored.
func (p *eventPrinter) stored(events []adminapi.Event) error {
	for i := range events {
		e := &events[i]
		ev, err := e.Decode()
		if err != nil {
			return err
		}
		p.cause(ev.Cause)
		if e.Value == nil {
			p.endText()
			p.line("omitted", fmt.Sprintf("a %s of %s  (event %d)", e.Kind, humanize.IBytes(uint64(e.Bytes)), e.Seq))
			continue
		}
		if err := p.event(&ev); err != nil {
			return err
		}
	}
	return p.err
}

// cause prints the message of the Leader causing the next event.
func (p *eventPrinter) cause(m *task.Message) {
	if m == nil {
		return
	}
	p.endText()
	p.line("received", joined(stamp(m.SentAt), string(m.Command), m.ID))
	p.items("", m.DataItems)
}
