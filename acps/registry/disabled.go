// SPDX-License-Identifier: Apache-2.0

package registry

import "context"

// keptDisabled is the kept part of the last answer of a registry about one of our agents.
type keptDisabled struct {
	Disabled bool `json:"disabled"`
}

// WasDisabled reports whether the registry has last reported an agent as not active, as kept by KeepDisabled.
func (a *Account) WasDisabled(ctx context.Context, aic string) (bool, error) {
	kept, err := load[keptDisabled](ctx, a.storage, a.disabledKey(aic))
	return kept.Disabled, err
}

// KeepDisabled keeps whether the registry reports an agent as not active, for a process unable to ask it.
func (a *Account) KeepDisabled(ctx context.Context, aic string, disabled bool) error {
	return store(ctx, a.storage, a.disabledKey(aic), keptDisabled{disabled})
}

func (a *Account) disabledKey(aic string) string {
	return a.folder + "/disabled-" + digest(aic) + ".json"
}
