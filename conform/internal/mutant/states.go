// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// does gives a command an effect in a state that it has not.
func does(command, state, next string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Accepts["life after the end"] = true
		p.Rules[command][state] = next
	}
}

// ignores takes the effect of a command in a state away.
func ignores(command, state string) func(*partner.Partner) {
	return func(p *partner.Partner) { delete(p.Rules[command], state) }
}

// refuses answers a command, when its rule has no effect, with an error.
func refuses(command, name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure == nil && c.Command == command && c.Method == "rpc" {
				return nil, p.Failure(name)
			}
			return v, failure
		}
	}
}

// states are deviations from the table of 4.2.
var states = []Mutant{
	{"complete ends a task that works", "4.2", does("complete", "working", "completed")},
	{"complete ends a task that awaits input", "4.2", does("complete", "awaiting-input", "completed")},
	{"complete ends a task that was canceled", "4.2", does("complete", "canceled", "completed")},
	{"complete ends a task that has failed", "4.2", does("complete", "failed", "completed")},
	{"complete ends a task that was rejected", "4.2", does("complete", "rejected", "completed")},
	{"complete has an effect twice", "4.2", does("complete", "completed", "completed")},
	{"continue wakes a completed task", "4.2", does("continue", "completed", "working")},
	{"continue wakes a canceled task", "4.2", does("continue", "canceled", "working")},
	{"continue wakes a failed task", "4.2", does("continue", "failed", "working")},
	{"continue wakes a rejected task", "4.2", does("continue", "rejected", "working")},
	{"continue begins the work of a working task again", "4.2", does("continue", "working", "working")},
	{"cancel has an effect on a completed task", "4.2", does("cancel", "completed", "canceled")},
	{"cancel has an effect on a failed task", "4.2", does("cancel", "failed", "canceled")},
	{"cancel has an effect on a rejected task", "4.2", does("cancel", "rejected", "canceled")},
	{"cancel has an effect twice", "4.2", does("cancel", "canceled", "canceled")},
	{"cancel is ignored while the task works", "4.2", ignores("cancel", "working")},
	{"cancel is ignored while the task awaits input", "4.2", ignores("cancel", "awaiting-input")},
	{"cancel is ignored while the task awaits its completion", "4.2", ignores("cancel", "awaiting-completion")},
	{"continue is ignored while the task awaits input", "4.2", ignores("continue", "awaiting-input")},
	{"continue is ignored while the task awaits its completion", "4.2", ignores("continue", "awaiting-completion")},
	{"complete is ignored", "4.2", ignores("complete", "awaiting-completion")},
	{"cancel fails a task", "4.2", becomes("", "canceled", "failed")},
	{"cancel completes a task", "4.2", becomes("", "canceled", "completed")},
	{"complete cancels a task", "4.2", becomes("", "completed", "canceled")},
	{"complete makes a task fail", "4.2", becomes("", "completed", "failed")},
	{"complete is answered with an error", "4.2|6.1", refuses("complete", "InternalError")},
	{"continue is answered with an error", "4.2|6.1", refuses("continue", "UnsupportedOperationError")},
	{"cancel is answered with an error", "4.2|6.1", refuses("cancel", "TaskNotCancelableError")},
	{"a second start begins anew", "4.2", accepts("second start")},
	{"a rejected task was accepted before", "4.2", func(p *partner.Partner) {
		p.Pieces = func(_ *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) == 1 {
				return append([]partner.Step{p.To("accepted")}, steps...)
			}
			return steps
		}
	}},
	{"a rejected task has failed", "4.2|6.1", becomes("", "rejected", "failed")},
	{"a rejected task is canceled", "4.2|6.1", becomes("", "rejected", "canceled")},
	{"a failed task is rejected", "4.2|6.1", becomes("", "failed", "rejected")},
	{"a failed task is completed", "4.2|6.1", becomes("", "failed", "completed")},
	{"a failed task did not work before", "4.2", func(p *partner.Partner) {
		p.Pieces = func(_ *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) == 3 {
				return append(steps[:1:1], steps[2:]...)
			}
			return steps
		}
	}},
	{"a task that awaits its completion did not work before", "4.2", func(p *partner.Partner) {
		p.Pieces = func(_ *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) > 3 {
				return append(steps[:1:1], steps[2:]...)
			}
			return steps
		}
	}},
	{"a task awaits its completion in place of input", "4.2|6.1", becomes("", "awaiting-input", "awaiting-completion")},
	{"a task awaits input in place of its completion", "4.2|6.1", becomes("", "awaiting-completion", "awaiting-input")},
	{"a task is completed in place of awaiting it", "4.2|6.1", becomes("", "awaiting-completion", "completed")},
	{"an unknown state", "4.2", becomes("", "working", "running")},
	{"the states in Pascal's case", "4.2", changed("", func(status object) {
		words := strings.Split(status["state"].(string), "-")
		for i, w := range words {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
		status["state"] = strings.Join(words, "")
	})},
	{"a state with an underscore", "4.2", becomes("", "awaiting-completion", "awaiting_completion")},
	{"the time-out of awaiting input is not kept", "4.2|4.3", start("awaitingInputTimeout")},
	{"the time-out of awaiting completion is not kept", "4.2|4.3", start("awaitingCompletionTimeout")},
	{"the time-out of awaiting input fails the task", "4.2|4.3", becomes("awaiting-input", "canceled", "failed")},
	{"the time-out of awaiting completion cancels the task", "4.2|4.3", becomes("awaiting-completion", "completed",
		"canceled")},
	{"a limit of bytes is not kept", "4.3", accepts("too many bytes")},
}

// start takes a parameter from starts.
func start(name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if params, is := c.Message["commandParams"].(object); is {
				delete(params, name)
			}
			for _, member := range []string{"message", "command"} {
				message, _ := c.Params[member].(object)
				if params, is := message["commandParams"].(object); is {
					delete(params, name)
				}
			}
			return next()
		}
	}
}

// histories are deviations of the histories and their filters.
var histories = []Mutant{
	{"a get has no history of states", "4.3|4.2|6.1", result(del("statusHistory"))},
	{"the history of states is empty", "4.3|4.2|6.1", history("statusHistory", func([]any) []any { return []any{} })},
	{"the history of states has the last one alone", "4.3|4.2|6.1", history("statusHistory", last)},
	{"the history of states lacks the last one", "4.3|4.2|6.1", history("statusHistory", func(all []any) []any {
		return all[:max(0, len(all)-1)]
	})},
	{"the history of states is backwards", "4.3|4.2|6.1", history("statusHistory", backwards)},
	{"the history of states has no times", "4.3|4.2|6.1", history("statusHistory", func(all []any) []any {
		for _, o := range all {
			delete(o.(object), "stateChangedAt")
		}
		return all
	})},
	{"the history of states has texts", "4.3|4.2|6.1", history("statusHistory", func(all []any) []any {
		for i, o := range all {
			all[i] = o.(object)["state"]
		}
		return all
	})},
	{"a get has no history of messages", "4.3|4.2|6.1", func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) { delete(o, t.Version.History) }
	}},
	{"the history of messages is empty", "4.3|4.2|6.1", history("", func([]any) []any { return []any{} })},
	{"the history of messages is backwards", "4.3|4.2|6.1", history("", backwards)},
	{"the history of messages lacks the start", "4.3|4.2|6.1", history("", func(all []any) []any {
		return all[min(1, len(all)):]
	})},
	{"the history of messages has the last one alone", "4.3|4.2|6.1", history("", last)},
	{"the history of messages lacks their data", "4.3|4.2|6.1", history("", func(all []any) []any {
		for _, o := range all {
			o.(object)["dataItems"] = []any{}
		}
		return all
	})},
	{"the history of messages has other ids", "4.3|4.2|6.1", history("", func(all []any) []any {
		for _, o := range all {
			o.(object)["id"] = "msg"
		}
		return all
	})},
	{"the histories are not filtered", "4.3", accepts("histories in whole")},
	{"the history of states is not filtered", "4.3", unfiltered("lastStateChangedAt")},
	{"the history of messages is not filtered", "4.3", unfiltered("")},
	{"filtered histories are empty", "4.3", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			params, _ := c.Message["commandParams"].(object)
			if r, is := o["result"].(object); is && c.Command == "get" && params["lastStateChangedAt"] != nil {
				r["statusHistory"] = []any{}
			}
		}
	}},
}

// unfiltered takes a parameter from gets.
func unfiltered(name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			for _, member := range []string{"message", "command"} {
				message, _ := c.Params[member].(object)
				if params, is := message["commandParams"].(object); is {
					if name == "" {
						delete(params, "lastMessageSentAt")
						delete(params, "lastCommandSentAt")
					}
					delete(params, name)
				}
			}
			return next()
		}
	}
}

// history changes a history; "" for that of messages.
func history(name string, change func([]any) []any) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) {
			name := name
			if name == "" {
				name = t.Version.History
			}
			if all, is := o[name].([]any); is {
				o[name] = change(all)
			}
		}
	}
}

func last(all []any) []any { return all[max(0, len(all)-1):] }

func backwards(all []any) []any {
	turned := make([]any, 0, len(all))
	for i := range all {
		turned = append(turned, all[len(all)-1-i])
	}
	return turned
}
