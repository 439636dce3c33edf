// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// TestVersions: both modes find the highest common version of both ends. If there is none, the error names the versions
// of both.
func TestVersions(t *testing.T) {
	pki := auntest.NewPKI(t)
	login := aun.NewPeerLogin(pki.Identity("alice.aid.test"), pki.Roots())
	answer := func(version string, err error) string {
		if err == nil {
			return version
		}
		if code(err) != codes.Version {
			t.Error(err)
		}
		data := gjson.ParseBytes(err.(*aun.Error).Data)
		return "not " + data.Get("client_range.min").Str + "-" + data.Get("client_range.max").Str + " of " +
			data.Get("server_range.min").Str + "-" + data.Get("server_range.max").Str
	}
	for protocol, want := range map[string]struct{ gateway, peer string }{
		`null`:                      {"1.0", "1.0"},
		`"1.0"`:                     {"1.0", "1.0"},
		`"0.1"`:                     {"not 0.1-0.1 of 1.0-1.0", "0.1"},
		`"2.0"`:                     {"not 2.0-2.0 of 1.0-1.0", "not 2.0-2.0 of 0.1-1.0"},
		`{"min":"0.1","max":"1.0"}`: {"1.0", "1.0"},
		`{"min":"0.9","max":"3.0"}`: {"1.0", "1.0"},
		`{"min":"1.0"}`:             {"1.0", "1.0"},
		`{"max":"0.5"}`:             {"not -0.5 of 1.0-1.0", "0.1"},
	} {
		gateway := answer("1.0", aun.CheckVersion(gjson.Parse(protocol)))
		result, err := login.Initialize(gjson.Parse(`{"mode":"peer","protocol":` + protocol + `}`))
		peer := answer(gjson.GetBytes(result, "protocol").Str, err)
		if gateway != want.gateway || peer != want.peer {
			t.Errorf("%s: %s in gateway mode, %s in peer mode", protocol, gateway, peer)
		}
	}
}
