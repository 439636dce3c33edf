// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

// deviceLogin is an account with its user asked to log in.
type deviceLogin struct {
	*Account
	t *testing.T
	r *registrytest.Registry
}

func newDeviceLogin(t *testing.T) *deviceLogin {
	r := registrytest.NewOIDC(t)
	d := &deviceLogin{NewAccount(open(t, r.URL), &Device{Provider: open(t, r.Issuer()),
		ClientID: registrytest.ClientID}, newMemory()), t, r}
	d.waits(true, 1)
	return d
}

// kept changes the kept session.
func (d *deviceLogin) kept(change func(*asked)) (a asked) {
	d.t.Helper()
	s, err := load[session](d.t.Context(), d.storage, d.key)
	if err != nil || s.Asked == nil {
		d.t.Fatalf("no person is asked to log in: %v", err)
	}
	change(s.Asked)
	if err := store(d.t.Context(), d.storage, d.key, s); err != nil {
		d.t.Fatal(err)
	}
	return *s.Asked
}

// due has it be time to ask the provider.
func (d *deviceLogin) due() { d.kept(func(a *asked) { a.Next = time.Now().Add(-time.Second) }) }

// waits asks for a token, and expects the need for a login, requested so many times; by a URL if asking.
func (d *deviceLogin) waits(asking bool, times int) {
	d.t.Helper()
	ctx := d.t.Context()
	if asking {
		ctx = Asking(ctx)
	}
	_, err := d.token(ctx, "")
	e, ok := errors.AsType[*LoginError](err)
	if n := d.r.Asked(); !ok || (e.URL != "") != asking || n != times {
		d.t.Errorf("a person was asked %d times, and not %d: %v", n, times, err)
	}
}

// TestPages: a person is asked to open a safe page, with the code if the page with it is safe, too.
func TestPages(t *testing.T) {
	const plain = "https://id.example/device?tenant=a"
	for complete, want := range map[string]string{
		"https://id.example/device?tenant=a&user_code=A": "https://id.example/device?tenant=a&user_code=A",
		"http://127.0.0.1:8080/device?user_code=A":       "http://127.0.0.1:8080/device?user_code=A",
		"":                                     plain,
		"http://id.example/device?user_code=A": plain,
		"https://id.example@evil.example/?a":   plain,
		"javascript:alert(1)":                  plain,
		"https://id.example/\n":                plain,
	} {
		if got, err := pageOf(plain, complete); got != want || err != nil {
			t.Errorf("%q: the page is %q, %v, want %q", complete, got, err, want)
		}
	}
	for _, bad := range []string{"", "http://id.example/", "file:///etc", "https://a:b@id.example/"} {
		if got, err := pageOf(bad, plain); err == nil {
			t.Errorf("%q is no page, but the page is %q", bad, got)
		}
	}
}

// TestDeviceRefused: after a refusal, the login is requested again only if a person waits for it.
func TestDeviceRefused(t *testing.T) {
	d := newDeviceLogin(t)
	d.r.LogIn(false)
	d.due()
	d.waits(false, 1)
	d.waits(true, 2)
}

// TestDeviceExpired: a login not made in time is not asked for at the provider, and begun anew.
func TestDeviceExpired(t *testing.T) {
	d := newDeviceLogin(t)
	d.kept(func(a *asked) { a.Until = time.Now() })
	d.waits(false, 1)
	if n := d.r.Count("POST /realms/acps-registry/token"); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	d.waits(true, 2)
}

// TestDeviceSlowDown: a provider asked too often is asked less often, and the login goes on.
func TestDeviceSlowDown(t *testing.T) {
	d := newDeviceLogin(t)
	before := d.kept(func(a *asked) { a.Next = time.Now().Add(-time.Second) })
	d.r.SlowDown()
	d.waits(true, 1)
	if after := d.kept(func(*asked) {}); after.Every != before.Every+slowDown {
		t.Errorf("it is asked every %v, and not %v", after.Every, before.Every+slowDown)
	}
	d.r.LogIn(true)
	d.waits(true, 1) // it is not yet time
	d.due()
	if token, err := d.token(t.Context(), ""); err != nil || token == "" {
		t.Errorf("got %q, %v", token, err)
	}
}
