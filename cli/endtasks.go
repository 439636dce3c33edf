// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	maxEnded  = 1000 // tasks ended by one command
	endAtOnce = 8    // of them, at the same time
	maxNamed  = 5    // tasks named for each reason why some have not ended
)

// endings are what a command to end tasks says and selects, by the state in which they end.
var endings = map[task.State]struct {
	verb string
	from []string // the states from which an operator can end a task so
}{
	task.Canceled: {"Cancel", adminapi.Cancelable()},
	task.Failed:   {"Fail", adminapi.Failable()},
}

// endTask returns the deed of a command to end a task in a state, or the tasks selected by its flags.
func endTask(end task.State) deed {
	one := action(func(a *asking, _ url.Values, args []string) (any, error) {
		t, _, err := tasks.find(a, args[0])
		if err != nil {
			return nil, err
		}
		return adminapi.TaskEnding{TaskName: t.TaskName, Reason: a.text("reason")}, nil
	}, func(t *adminapi.Task) (sentence string, err error) {
		if t.State != end {
			err = errors.New("the task has ended otherwise meanwhile")
		}
		return fmt.Sprintf("%s is %s", clean(t.Task), t.State), err
	})
	return func(a *asking) func([]string) error {
		endOne := one(a)
		a.confirmFlag()
		return func(args []string) error {
			if len(args) > 0 {
				return endOne(args)
			}
			return endTasks(a, end)
		}
	}
}

// endTasks ends the tasks selected by the flags of a command, after a question.
func endTasks(a *asking, end task.State) error {
	of := endings[end]
	q := a.query(adminapi.RouteOf(adminapi.Tasks))
	if len(q) == 0 {
		return errors.New("name a task, or say which by flags: " + filterFlags(a))
	}
	for _, state := range q["state"] {
		if !slices.Contains(of.from, state) {
			return fmt.Errorf("no task that is %s can be made %s; --state is one of %s", clean(state), end,
				strings.Join(of.from, ", "))
		}
	}
	if !q.Has("state") {
		q["state"] = of.from
	}
	var list []adminapi.Task
	err := tasks.pages(a, q, maxEnded+1, func(page []adminapi.Task, _ []byte) error {
		list = append(list, page...)
		return nil
	})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return a.print([]byte{}, tasks.none)
	}
	more := len(list) > maxEnded
	list = list[:min(len(list), maxEnded)]
	question := fmt.Sprintf("%s %s?", of.verb, byState(list))
	if more {
		question = fmt.Sprintf("More than %d tasks are selected. %s the first %s?", maxEnded, of.verb, byState(list))
	}
	if err := a.confirm(question); err != nil {
		return err
	}
	failed := a.endAll(list, end)
	if more && !a.asJSON {
		a.PrintErrln("there are more tasks: repeat the command")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks are not %s", failed, len(list), end)
	}
	return nil
}

// byState returns the numbers of tasks in a list, by their states.
func byState(list []adminapi.Task) string {
	counts := make(map[task.State]int)
	for i := range list {
		counts[list[i].State]++
	}
	var states []string
	for _, state := range append([]task.State{adminapi.PendingTask}, task.States()...) {
		if n := counts[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
	}
	return fmt.Sprintf("%s (%s)", countOf(len(list)), strings.Join(states, ", "))
}

func countOf(tasks int) string {
	if tasks == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", tasks)
}

// filterFlags names a command's flags for selecting tasks.
func filterFlags(a *asking) string {
	var names []string
	for _, f := range a.table.Flags {
		if slices.Contains(adminapi.RouteOf(adminapi.Tasks).Query, strings.ReplaceAll(f.Name, "-", "_")) {
			names = append(names, "--"+f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// endAll ends tasks, some at a time. It prints how many have ended, and why others have not, and returns the number of
// the others.
func (a *asking) endAll(list []adminapi.Task, end task.State) (failed int) {
	var lock sync.Mutex
	reasons := make(map[string][]string) // the ids of the tasks not ended
	next := make(chan *adminapi.Task)
	var work sync.WaitGroup
	for range min(endAtOnce, len(list)) {
		work.Go(func() {
			for t := range next {
				var out adminapi.Task
				raw, err := a.ask(a.route, nil, adminapi.TaskEnding{TaskName: t.TaskName, Reason: a.text("reason")}, &out)
				if err == nil && out.State != end {
					err = fmt.Errorf("the task has ended otherwise meanwhile: it is %s", out.State)
				}
				lock.Lock()
				if err != nil {
					reasons[err.Error()] = append(reasons[err.Error()], clean(t.Task))
					failed++
				} else if a.asJSON {
					_ = writeJSON(a.OutOrStdout(), raw)
				}
				lock.Unlock()
			}
		})
	}
	for i := range list {
		next <- &list[i]
	}
	close(next)
	work.Wait()
	if !a.asJSON {
		fmt.Fprintf(a.OutOrStdout(), "%s %s\n", countOf(len(list)-failed), end)
	}
	for reason, ids := range reasons {
		named := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
		if n := len(ids) - maxNamed; n > 0 {
			named += fmt.Sprintf(" and %d more", n)
		}
		a.PrintErrf("%s: %s\n", named, reason)
	}
	return failed
}
