// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// parallel runs a step so many times at once. Its first failure is that of all.
func (t *scenario) parallel(ctx context.Context, s *acts.Step) (*outcome, error) {
	p := s.Parallel
	if p.Step == nil || p.Count < 1 || p.Count > maxParallel || p.Step.Operation == "" && p.Step.Raw == nil ||
		p.Step.OpenStream != "" {
		return nil, fmt.Errorf("parallel of step %s needs a step with an operation, 1 to %d times", s.ID, maxParallel)
	}
	v := verifier{t.scope.protocol, t.scope.vars(t.identity(p.Step))}
	outcomes, errs := make([]*outcome, p.Count), make([]error, p.Count)
	var all sync.WaitGroup
	for i := range p.Count {
		all.Go(func() {
			if outcomes[i], errs[i] = t.send(ctx, p.Step, v); errs[i] != nil {
				return
			}
			found, err := t.answer(p.Step, outcomes[i], v)
			if err == nil && len(found) > 0 {
				err = t.fail(s, outcomes[i], found)
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	o := &outcome{exchange: outcomes[0].exchange, parallel: outcomes}
	roots := []any{}
	for _, one := range outcomes {
		roots = append(roots, one.root)
	}
	o.root, o.hasRoot = roots, true
	if p.CountDistinct == nil {
		return o, nil
	}
	text, err := v.vars.Text(p.CountDistinct.Path)
	if err != nil {
		return nil, err
	}
	path, err := acts.ParsePath(text)
	if err != nil {
		return nil, err
	}
	var distinct []any
	for _, one := range outcomes {
		root := one.root
		if !one.hasRoot {
			root = one.body
		}
		for _, value := range path.Of(root) {
			if !slices.ContainsFunc(distinct, func(d any) bool { return acts.Equal(d, value) }) {
				distinct = append(distinct, value)
			}
		}
	}
	want, err := v.vars.Resolve(p.CountDistinct.Equals)
	if err != nil {
		return nil, err
	}
	if found := acts.Match(want, len(distinct)); len(found) > 0 {
		return nil, t.fail(s, o, []acts.Mismatch{{Path: p.CountDistinct.Path,
			Expected: "different values: " + brief(want), Actual: brief(distinct)}})
	}
	return o, nil
}
