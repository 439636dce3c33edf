// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

func tasksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks <command>",
		Short: "Lists, shows, follows and ends the tasks of a running gateway",
		Long: `
Lists the tasks of a running gateway, of all Leaders, shows one of them with its events,
prints what changes as it happens, and cancels or fails a task. It uses Caddy's admin
API.
`,
	}
	onlyGroup(cmd)
	cmd.AddCommand(listTasksCommand(), showTaskCommand(), tailTasksCommand(), cancelTaskCommand(),
		failTaskCommand())
	return cmd
}

// taskFlags select tasks.
type taskFlags struct {
	partner, leader, minAge, maxAge string
	states                          []string
}

func (f *taskFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.partner, "partner", "", "of this Partner: its AIC, or its agent's URL")
	set.StringVar(&f.leader, "leader", "", "of this Leader")
}

func (f *taskFlags) query() url.Values {
	q := queryOf(map[string]string{
		"partner": f.partner, "leader": f.leader, "min_age": f.minAge, "max_age": f.maxAge,
	})
	if len(f.states) > 0 {
		q["state"] = f.states
	}
	return q
}

// listedTasks are the tasks of the gateway.
func listedTasks() listing[adminapi.TaskPage, adminapi.Task] {
	return listing[adminapi.TaskPage, adminapi.Task]{
		path:    adminapi.Tasks,
		entries: func(p *adminapi.TaskPage) ([]adminapi.Task, string) { return p.Tasks, p.Next },
		header:  "TASK\tSTATE\tSINCE\tEVENTS\tSIZE\tLEADER\tPARTNER",
		row: func(t *adminapi.Task) string {
			return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", clean(t.Task), t.State, stamp(t.Since), t.Last,
				humanize.IBytes(uint64(t.Bytes)), clean(t.Leader), clean(t.Partner))
		},
		none: "There is no such task.",
	}
}

func listTasksCommand() *cobra.Command {
	var filter taskFlags
	list := listedTasks()
	cmd := &cobra.Command{
		Use:   "list [--state <state>] [--min-age <time>] [--leader <aic>] [--partner <aic>] [...]",
		Short: "Lists the tasks of the gateway",
		Long: `
Lists the tasks of the gateway, those that have ended included while they are kept, in
the order of their Partners, Leaders and ids. A task is pending until its Leader gets
the first answer. The age of a task is the time since its last change of state.
`,
		Example: `  $ caddy aip tasks list
  $ caddy aip tasks list --state working --min-age 1h
  $ caddy aip tasks list --state failed --max-age 1d --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list.print(cmd, filter.query()) },
	}
	list.add(cmd.Flags(), "tasks")
	filter.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&filter.states, "state", nil, "pending, or a state of AIP; may be repeated")
	cmd.Flags().StringVar(&filter.minAge, "min-age", "", "whose state has not changed for this time, such as 10m or 2d")
	cmd.Flags().StringVar(&filter.maxAge, "max-age", "", "whose state has changed within this time")
	return cmd
}

// find returns the name of the task with an id. There must be one.
func (f *taskFlags) find(admin *adminFlags, id string) (name adminapi.TaskName, err error) {
	q := f.query()
	q.Set("task", id)
	var found []adminapi.Task
	tasks := listedTasks()
	err = tasks.pages(admin, q, 2, func(list []adminapi.Task, _ []byte) error {
		found = append(found, list...)
		return nil
	})
	switch {
	case err != nil:
		return name, err
	case len(found) == 0:
		return name, fmt.Errorf("there is no task %q; it may have ended and been dropped", id)
	case len(found) > 1:
		return name, errors.New("several tasks have this id; say which by --leader and --partner")
	}
	return found[0].TaskName, nil
}

func showTaskCommand() *cobra.Command {
	var admin adminFlags
	var filter taskFlags
	var after uint64
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show <task> [--after <event>] [--leader <aic>] [--partner <aic>]",
		Short: "Shows a task with its events",
		Long: `
Shows a task with its events, and the Leader's messages that caused them. If several
Leaders or Partners have a task with this id, say which.
`,
		Example: `  $ caddy aip tasks show task-1
  $ caddy aip tasks show task-1 --after 100 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return errors.New("--limit must be above 0")
			}
			name, err := filter.find(&admin, args[0])
			if err != nil {
				return err
			}
			q := url.Values{"partner": {name.Partner}, "leader": {name.Leader}, "task": {name.Task}}
			out := eventPrinter{printer: printer{w: cmd.OutOrStdout()}}
			for printed := 0; ; {
				q.Set("after", strconv.FormatUint(after, 10))
				q.Set("limit", strconv.Itoa(min(limit-printed, 1000)))
				var page adminapi.EventPage
				raw, err := admin.ask(http.MethodGet, adminapi.TaskEvents, q, nil, &page)
				if err != nil {
					return err
				}
				if asJSON {
					_, err = cmd.OutOrStdout().Write(raw)
				} else {
					if printed == 0 {
						out.overview(&page.Task)
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
					if !asJSON {
						out.endText()
						out.line("next", "show with --after "+strconv.FormatUint(after, 10))
					}
					break
				}
			}
			out.endText()
			return out.err
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	cmd.Flags().Uint64Var(&after, "after", 0, "the events after the one with this number")
	cmd.Flags().IntVar(&limit, "limit", 1000, "the largest number of events")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON of the admin API, one page per line")
	return cmd
}

func cancelTaskCommand() *cobra.Command {
	return endTaskCommand(&cobra.Command{
		Use:   "cancel <task> [--reason <text>] [--leader <aic>] [--partner <aic>]",
		Short: "Cancels a task as the operator",
		Long: `
Cancels a task that has not ended. Its agent is asked to stop, as if the Leader had
canceled the task, and the status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which.
`,
		Example: `  $ caddy aip tasks cancel task-1 --reason "the agent is taken out of service"`,
	}, adminapi.CancelTask, task.Canceled)
}

func failTaskCommand() *cobra.Command {
	return endTaskCommand(&cobra.Command{
		Use:   "fail <task> [--reason <text>] [--leader <aic>] [--partner <aic>]",
		Short: "Ends a task as failed, as the operator",
		Long: `
Ends a task that its agent works on as failed. The agent is asked to stop, but the task
fails whatever it answers. The status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which.
`,
		Example: `  $ caddy aip tasks fail task-1 --reason "the agent has lost its data"`,
	}, adminapi.FailTask, task.Failed)
}

// endTaskCommand makes cmd a command that asks a route to end a task in a state.
func endTaskCommand(cmd *cobra.Command, route string, end task.State) *cobra.Command {
	var admin adminFlags
	var filter taskFlags
	var reason string
	var asJSON bool
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := filter.find(&admin, args[0])
		if err != nil {
			return err
		}
		var out adminapi.Task
		body := adminapi.TaskEnding{TaskName: name, Reason: reason}
		raw, err := admin.ask(http.MethodPost, route, nil, body, &out)
		if err != nil {
			return err
		}
		if err := printAnswer(cmd, asJSON, raw, "%s is %s", clean(out.Task), out.State); err != nil {
			return err
		}
		if out.State != end {
			return errors.New("the task has ended otherwise meanwhile")
		}
		return nil
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why; the Leader sees it in the status of the task")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// overview prints a task without its contents.
func (p *printer) overview(t *adminapi.Task) {
	p.begin(t.Task)
	p.line("session", t.Session)
	p.line("leader", t.Leader)
	p.line("partner", t.Partner)
	p.line("state", string(t.State)+" since "+stamp(t.Since))
	events := fmt.Sprintf("%d to %d, %s", t.First, t.Last, humanize.IBytes(uint64(t.Bytes)))
	if t.First > t.Last {
		events = "none"
	}
	p.line("events", events)
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

// cause prints the message of the Leader that caused the next event.
func (p *eventPrinter) cause(m *task.Message) {
	if m == nil {
		return
	}
	p.endText()
	p.line("received", joined(stamp(m.SentAt), string(m.Command), m.ID))
	p.items("", m.DataItems)
}
