// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/partner"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Limits of delegation.
const (
	maxDepth    = 8
	maxChildren = 32
)

// addChild adds a child to a task, and returns the depth of the child.
func (x *Index) addChild(ctx context.Context, parent, child string) (depth int, err error) {
	err = x.change(ctx, parent, true, func(e *entry) (bool, error) {
		switch {
		case e == nil:
			return false, partner.NotFound(parent)
		case slices.Contains(e.Children, child): // the same delegation again
			depth = e.Depth + 1
			return false, nil
		case e.Depth+1 > maxDepth:
			return false, codec.ChildLimitExceeded("depth", maxDepth)
		case len(e.Children) >= maxChildren:
			return false, codec.ChildLimitExceeded("children", maxChildren)
		}
		e.Children, depth = append(e.Children, child), e.Depth+1
		return true, nil
	})
	return depth, err
}

// removeChild removes a child not started after all.
func (x *Index) removeChild(ctx context.Context, parent, child string) error {
	return x.change(ctx, parent, true, func(e *entry) (bool, error) {
		if e == nil {
			return false, nil
		}
		e.Children = slices.DeleteFunc(e.Children, func(id string) bool { return id == child })
		return true, nil
	})
}

// openChildren returns the open children of a task: its assignee cannot complete it before their end.
func (x *Index) openChildren(ctx context.Context, taskID string) (open []string, err error) {
	e, err := x.get(ctx, taskID)
	if err != nil || e == nil {
		return nil, err
	}
	for _, id := range e.Children {
		child, err := x.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if child != nil && !x.ended(ctx, child) {
			open = append(open, id)
		}
	}
	return open, nil
}
