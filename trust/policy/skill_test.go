// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestSkills: a rule allowing a skill lets in the calls for this one alone, wherever an agent may look for it, and one
// denying a skill has all calls for it, too. A call without a clear skill is let in by no rule about skills, and no
// decision point is asked about it.
//
// Promise: a Leader does what it is not meant to do
func TestSkills(t *testing.T) {
	allows := newPolicy(t, Config{Rules: []Rule{{Name: "public", Match: Match{Skill: []string{"public", "open"}}}}})
	denies := newPolicy(t, Config{Rules: []Rule{{Deny: true, Match: Match{Skill: []string{"secret"}}}, {}}})
	asked := 0
	asks := newPolicy(t, Config{Further: func(context.Context, *Call) error { asked++; return nil }})
	const message = `{"a2a":{"message":{"metadata":{"skillId":"secret"}}}}`
	for name, tc := range map[string]struct {
		params, extensions  string
		item                string
		invited             []string
		allow, denied, asks bool
	}{
		"none":            {asks: true},
		"the skill":       {params: `{"skillId":"public"}`, allow: true, asks: true},
		"another one":     {params: `{"skillId":"secret"}`, denied: true, asks: true},
		"in the metadata": {extensions: `{"skillId":"public"}`, allow: true, asks: true},
		"in the params":   {extensions: `{"a2a":{"metadata":{"skillId":"public"}}}`, allow: true, asks: true},
		"twice the same": {params: `{"skillId":"public"}`,
			extensions: `{"a2a":{"message":{"metadata":{"skillId":"public"}}}}`, allow: true, asks: true},
		"a null":              {params: `{"skillId":"public"}`, extensions: `{"skillId":null}`, allow: true, asks: true},
		"an empty one":        {params: `{"skillId":""}`, extensions: `{"skillId":"public"}`, allow: true, asks: true},
		"two":                 {params: `{"skillId":"public"}`, extensions: message, denied: true},
		"two that are listed": {params: `{"skillId":"public"}`, extensions: `{"skillId":"open"}`, denied: true},
		"in two metadata": {
			extensions: `{"a2a":{"message":{"metadata":{"skillId":"public"}},"metadata":{"skillId":"secret"}}}`, denied: true,
		},
		"beside a list": {
			extensions: `{"a2a":{"message":{"metadata":{"skillId":["secret"]}},"metadata":{"skillId":"public"}}}`, denied: true,
		},
		"of two families": {extensions: `{"aip":{"skillId":"public"},"agentapi":{"skillId":"secret"}}`, denied: true},
		"in a configuration": {
			params: `{"skillId":"public"}`, extensions: `{"a2a":{"configuration":{"skillId":"secret"}}}`, denied: true,
		},
		"in an item": {params: `{"skillId":"public"}`, item: `{"skillId":"secret"}`, denied: true},
		"in an item, for a dialect": {
			params: `{"skillId":"public"}`, item: `{"a2a":{"metadata":{"skillId":"secret"}}}`, denied: true,
		},
		"in an item alone":    {item: `{"skillId":"public"}`, allow: true, asks: true},
		"in other letters":    {params: `{"skillId":"public","SKILLID":"secret"}`, denied: true},
		"with an underscore":  {params: `{"skillId":"public","skill_id":"secret"}`, denied: true},
		"with an escape":      {params: `{"skillId":"public"}`, extensions: `{"s\u006billId":"secret"}`, denied: true},
		"a number":            {params: `{"skillId":1}`, denied: true},
		"deep in data":        {params: `{"x":{"y":{"skillId":"secret"}},"skillId":"public"}`, allow: true, asks: true},
		"invited":             {invited: []string{"public", "open"}, allow: true, asks: true},
		"invited for another": {invited: []string{"public", "secret"}, denied: true, asks: true},
	} {
		call := func() *Call {
			return callOf(byCertificate(aicV1), func(c *Call) {
				c.Message, c.Skills = &task.Message{Command: task.Start, Params: json.RawMessage(tc.params),
					Extensions: json.RawMessage(tc.extensions),
					DataItems:  []task.DataItem{{Kind: task.TextItem}, {Metadata: json.RawMessage(tc.item)}}}, tc.invited
			})
		}
		asked = 0
		decide := func(p *Policy) bool { return p.Decide(t.Context(), call(), new(Use)) == nil }
		got := []bool{decide(allows), !decide(denies), decide(asks)}
		if diff := cmp.Diff([]bool{tc.allow, tc.denied, tc.asks}, got); diff != "" {
			t.Errorf("%s: allowed, denied, decided by the decision point (-want +got):\n%s", name, diff)
		}
		if (asked > 0) != tc.asks {
			t.Errorf("%s: the decision point was asked %d times", name, asked)
		}
	}
	c := callOf(byCertificate(aicV1))
	c.Message.Params = json.RawMessage(`{"skillId":"a","skill_id":"b"}`)
	err := allows.Decide(t.Context(), c, new(Use))
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), `"a" and "b"`) ||
		strings.Contains(err.(*task.Error).Detail, "skill") {
		t.Errorf("the error is %v, because of %v", err, cause)
	}
}

// TestWebhookBeside: a call for a webhook beside its command is judged for both.
//
// Promise: a Leader does what it is not meant to do
func TestWebhookBeside(t *testing.T) {
	var asked []string
	further := func(_ context.Context, c *Call) error { asked = append(asked, c.Command); return nil }
	starts := Match{Command: []string{"start"}}
	each := []string{"start", "set-webhook"}
	hooks := Match{Command: []string{"set-webhook"}}
	for name, tc := range map[string]struct {
		rules []Rule
		want  string
		asked []string
	}{
		"hooks are denied":       {[]Rule{{Name: "no", Deny: true, Match: hooks}, {}}, "no", nil},
		"only starts are let in": {[]Rule{{Name: "s", Match: starts}}, NoRule, nil},
		"each by a rule":         {[]Rule{{Name: "s", Match: starts}, {Name: "h", Match: hooks}}, "", each},
		"no rules":               {nil, "", each},
	} {
		asked = nil
		p := newPolicy(t, Config{Rules: tc.rules, Further: further})
		err := p.Decide(t.Context(), callOf(byCertificate(aicV1), func(c *Call) { c.Webhook = true }), new(Use))
		if got := ruleOf(err); got != tc.want || (err != nil) != (tc.want != "") {
			t.Errorf("%s: %q has decided (%v), want %q", name, got, err, tc.want)
		}
		if diff := cmp.Diff(tc.asked, asked); diff != "" {
			t.Errorf("%s: the decision point was asked (-want +got):\n%s", name, diff)
		}
	}
}
