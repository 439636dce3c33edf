// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// hookValue is a request at a receiver as assertions see it. Names of headers are in lower case.
func hookValue(h wire.Hook) any {
	headers := make(map[string]any)
	for name, values := range h.Headers {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	body := decode(h.Body)
	if body == nil {
		body = string(h.Body)
	}
	return map[string]any{"method": h.Method, "path": h.Path, "headers": headers, "body": body, "status": h.Status}
}

// webhook waits for requests at a receiver.
func (t *scenario) webhook(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	w := s.Webhook
	receiver := t.scope.hooks[w.Receiver]
	if receiver == nil {
		return nil, fmt.Errorf("the test has no receiver %s", w.Receiver)
	}
	bounds := t.runner.profile.Bounds
	within := millis(cmp.Or(w.WithinMS, s.WithinMS, bounds.WaitMS))
	least := w.CountGTE
	if least == 0 && w.CountLTE == nil {
		least = 1
	}
	want, err := v.vars.Resolve(w.Match)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	settled := false
	var matching []any
	for over := false; ; {
		hooks, news := receiver.Hooks()
		matching = nil
		for _, h := range hooks {
			if value := hookValue(h); w.Match == nil || len(acts.Match(want, value)) == 0 {
				matching = append(matching, value)
			}
		}
		tooMany := w.CountLTE != nil && len(matching) > *w.CountLTE
		enough := len(matching) >= least && (w.CountLTE == nil || settled)
		if tooMany || enough || over {
			break
		}
		if w.CountLTE != nil && least > 0 && len(matching) >= least {
			settled = true
			timer.Reset(millis(bounds.SettleMS)) // more may come
		}
		select {
		case <-news:
			settled = false
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	o := &outcome{exchange: t.hooked(receiver)}
	if len(matching) > 0 {
		o.root, o.hasRoot = matching[len(matching)-1], true
		o.body, o.isJSON = matching, true
	}
	if n := len(matching); n < least || w.CountLTE != nil && n > *w.CountLTE {
		expected := fmt.Sprintf("at least %d", least)
		if w.CountLTE != nil {
			expected = fmt.Sprintf("%d to %d", least, *w.CountLTE)
		}
		return nil, t.fail(s, o, []acts.Mismatch{{Path: w.Receiver,
			Expected: fmt.Sprintf("%s requests as %s within %v", expected, brief(want), within), Actual: fmt.Sprint(n)}})
	}
	return o, nil
}

// hooked shows what a receiver got, for a report.
func (t *scenario) hooked(r *wire.Receiver) *wire.Exchange {
	hooks, _ := r.Hooks()
	var b strings.Builder
	for _, h := range hooks[max(0, len(hooks)-8):] {
		fmt.Fprintf(&b, "%s %s, answered with %d: %s\n", h.Method, h.Path, h.Status, brief(hookValue(h)))
	}
	return &wire.Exchange{Request: wire.Request{Method: "webhooks at", URL: r.URL}, Proto: "the receiver got",
		Status: len(hooks), Body: []byte(b.String())}
}
