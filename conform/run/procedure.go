// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// procedures are functions for what the format cannot say. Each returns what differs.
var procedures = map[string]func(*scenario, context.Context, *acts.Step, verifier) ([]acts.Mismatch, error){
	"pieces_add_up":           piecesAddUp,
	"pieces_begin_and_end":    piecesBeginAndEnd,
	"re_stream_at_each_event": reStreamAtEachEvent,
	"half_start":              halfStart,
}

// halfStart sends a start with the command of the step, and closes the connection in the middle of the body. No answer
// can come; a later step looks at what it did.
func halfStart(t *scenario, ctx context.Context, s *acts.Step, v verifier) ([]acts.Mismatch, error) {
	start := &acts.Step{ID: s.ID, Operation: "start", Command: s.Command, As: s.As}
	r, _, err := t.request(start, v)
	if err != nil {
		return nil, err
	}
	if err := t.runner.client(cmp.Or(s.As, "leader"), false).Half(ctx, r); err != nil {
		return []acts.Mismatch{{Expected: "a connection", Actual: err.Error()}}, nil
	}
	return nil, nil
}

func (t *scenario) procedure(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	do := procedures[s.Procedure]
	if do == nil {
		return nil, fmt.Errorf("this runner has no procedure %s", s.Procedure)
	}
	t.result.Procedures = append(t.result.Procedures, s.Procedure)
	found, err := do(t, ctx, s, v)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, t.fail(s, t.last, found)
	}
	return &outcome{}, nil
}
