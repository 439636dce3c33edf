// SPDX-License-Identifier: Apache-2.0

package notify

import "context"

// Move makes the webhooks of one task those of another, which has not been started yet: where nobody verifies who
// calls, a webhook is set before it is known whose the task will be. Both are named by their logs. Where there are
// none, nothing happens.
func (e *Engine) Move(ctx context.Context, from, to string) error {
	if watched, err := e.Watches(ctx, from); err != nil || !watched {
		return err
	}
	hooks, err := e.Get(ctx, from, "")
	if err != nil {
		return err
	}
	for _, w := range hooks {
		if _, err := e.Set(ctx, to, w, At{Named: true}); err != nil {
			return err
		}
	}
	return e.Delete(ctx, from, "")
}
