// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// account keeps the last word of a registry in memory.
type account map[string]bool

func (a account) WasDisabled(_ context.Context, aic string) (bool, error) {
	was, known := a[aic]
	if !known {
		return false, errors.New("it cannot be read")
	}
	return was, nil
}

func (a account) KeepDisabled(_ context.Context, aic string, disabled bool) error {
	a[aic] = disabled
	return nil
}

// TestActive: while a registry says nothing, its last word counts. It has only AICs with dots.
func TestActive(t *testing.T) {
	feed, err := NewProcess(Host{}).Feeds.Use("https://registry.example", nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(feed.Leave)
	a := NewActive(feed, account{"1.2.3": true, "1.2.4": false})
	for aic, readable := range map[string]bool{"1.2.3": true, "1.2.4": true, "1.2.5": false, "old": true} {
		if err := a.Load(t.Context(), aic); (err == nil) != readable {
			t.Errorf("%s is read: %v", aic, err)
		}
	}
	for aic, active := range map[string]bool{"1.2.3": false, "1.2.4": true, "1.2.5": true, "old": true, "": true} {
		if err := a.Check(aic); (err == nil) != active {
			t.Errorf("%q: %v", aic, err)
		}
		if err := a.keep(t.Context(), aic); err != nil {
			t.Errorf("%q: nothing is known to keep, but %v", aic, err)
		}
	}
	var none *Active
	if none.Check("1.2.3") != nil || none.Load(t.Context(), "1.2.5") != nil {
		t.Error("without a registry, a Partner is not active")
	}
}
