// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"errors"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// FuzzLogins holds the server side of the logins to its contract: whatever the params are, no client gets in without a
// key, and every refusal has a code.
func FuzzLogins(f *testing.F) {
	pki := auntest.NewPKI(f)
	id, roots := pki.Identity("gw.aid.test"), pki.Roots()
	a, err := aun.NewAuthority(aun.AuthorityConfig{Identity: id, Roots: roots})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"aid":"a.b","request_id":"x","nonce":"n","client_time":1.5,"signature":"AAAA","method":"aid"}`)
	f.Add(`{"mode":"peer","protocol":{"min":"0.1","max":"1.0"},"aid":"a.b","nonce":"n","cert":"","nonce_signature":"A"}`)
	f.Add(`{"method":"kite_token","token":"e30.e30.","refresh_token":"a.b.c"}`)
	f.Fuzz(func(t *testing.T, text string) {
		params, bad := jsonrpc.ParseValue([]byte(text), jsonrpc.Limits{})
		if bad != nil {
			return
		}
		peer := aun.NewPeerLogin(id, roots)
		_, _, confirmed := peer.Confirm(params)
		_, proven := a.Authenticate(params)
		_, login := a.Login2(params)
		_, hello := peer.Hello(params)
		for name, err := range map[string]error{
			"peer.confirm": confirmed, "auth.connect": proven, "auth.aid_login2": login, "peer.hello": hello,
		} {
			if _, ok := errors.AsType[*aun.Error](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		}
		if result, _, err := a.Refresh(params); err != nil || gjson.GetBytes(result, "success").Bool() {
			t.Errorf("refresh: %s, %v", result, err)
		}
		_, _ = peer.Initialize(params)
		_, _ = a.Login1(params)
	})
}
