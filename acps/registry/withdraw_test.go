// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

func TestWithdraw(t *testing.T) {
	r := registrytest.New(t)
	a := account(t, r, newMemory())
	if _, err := a.Withdraw(t.Context(), partner, "", false); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
	must(t, a, order("1.0.0", "echoes"))
	record, err := a.Withdraw(t.Context(), partner, "", false)
	if err != nil || record.Next.Status != Draft {
		t.Fatalf("got %s, %v", status(record), err)
	}
	if record = must(t, a, order("1.0.0", "sings")); record.Next.Status != Pending {
		t.Errorf("got %s", status(record))
	}
	if record, err = a.Withdraw(t.Context(), partner, "", true); err != nil || record.Next != nil {
		t.Errorf("got %s, %v", status(record), err)
	}
	must(t, a, order("1.0.0", "sings"))
	aic := r.Process("Echo", "1.0.0", true, "ok")
	if _, err := a.Poll(t.Context(), partner, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Withdraw(t.Context(), partner, "", true); !errors.Is(err, ErrNothing) {
		t.Errorf("what is approved is deleted without its AIC: %v", err)
	}
	if _, err := a.Withdraw(t.Context(), partner, "1.2.3", true); !errors.Is(err, ErrNothing) {
		t.Errorf("another AIC is deleted: %v", err)
	}
	record, err = a.Withdraw(t.Context(), partner, strings.ToLower(aic), true)
	if err != nil || record.Current.Status != Deleted {
		t.Errorf("got %s, %v", status(record), err)
	}
	if _, err := a.client.ACS(t.Context(), aic); !Is(err, Inactive) {
		t.Errorf("got %v", err)
	}
}

// TestWithdrawFormer deletes the version of an earlier AIC of the Partner. The present one goes on.
func TestWithdrawFormer(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	must(t, a, order("1.0.0", "echoes"))
	old := r.Process("Echo", "1.0.0", true, "ok")
	next := order("1.1.0", "sings")
	next.NewVersion = true
	must(t, a, order("1.0.0", "echoes"))
	must(t, a, next)
	aic := r.Process("Echo", "1.1.0", true, "ok")
	for _, gone := range []bool{false, true} {
		record, err := a.Withdraw(t.Context(), partner, strings.ToLower(old), true)
		if gone != errors.Is(err, ErrNothing) || !gone && err != nil || record.AIC() != aic || len(record.Former) != 0 {
			t.Errorf("gone %t: got %s, former %v, %v", gone, status(record), record.Former, err)
		}
	}
	if got := r.Agents("Echo"); !slices.Equal(got, []string{"1.1.0 APPROVED"}) {
		t.Errorf("there are %v", got)
	}
	if _, err := a.client.ACS(t.Context(), old); !Is(err, Inactive) {
		t.Errorf("got %v", err)
	}
}

// TestDisabled: a person of the registry disables an approved version.
func TestDisabled(t *testing.T) {
	r := registrytest.New(t)
	a := account(t, r, newMemory())
	must(t, a, order("1.0.0", "echoes"))
	aic := r.Process("Echo", "1.0.0", true, "ok")
	if _, err := a.Poll(t.Context(), partner, 0); err != nil {
		t.Fatal(err)
	}
	r.Disable(aic, "complaint")
	record, err := a.Poll(t.Context(), partner, 0)
	if err != nil || status(record) != "1.0.0 disabled "+aic+" complaint | -" {
		t.Errorf("got %s, %v", status(record), err)
	}
	r.Fail(func(string, string) registrytest.Fault { return registrytest.Bad })
	if record, err = a.Poll(t.Context(), partner, 0); !IsTransient(err) || record.Trouble == "" || record.AIC() != aic {
		t.Errorf("got %+v, %v", record, err)
	}
}
