// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestDescribe: a client of a version reads the card written by a server of the same version.
func TestDescribe(t *testing.T) {
	const card = `{"name":"n","skills":[]}`
	for _, tc := range []struct {
		client translate.Client
		server translate.Server
		method string
	}{
		{V03(), V03Server(false), "agent/getAuthenticatedExtendedCard"},
		{V1(), V1Server(false), "GetExtendedAgentCard"},
		{V1REST(), V1RESTServer(false), ""},
	} {
		t.Run(tc.client.Name(), func(t *testing.T) {
			client, server := tc.client.(translate.Describer), tc.server.(translate.CardServer)
			asked := client.AppendDescribe(nil)
			if got := gjson.GetBytes(asked, "method").Str; got != tc.method {
				t.Errorf("it asks by %q: %s", got, asked)
			}
			if tc.method != "" {
				req, bad := jsonrpc.Parse(asked, jsonrpc.Limits{})
				if bad != nil {
					t.Fatal(bad)
				}
				call, err := tc.server.Decode(&translate.Request{Request: req, HTTP: "POST"})
				if err != nil || call.Op != translate.ExtendedCard {
					t.Errorf("the server reads %+v, %v", call, err)
				}
			} else if method, path := tc.client.(translate.Binder).Bind(translate.Describe,
				agent.Ref{}); method != "GET" || path != "/extendedAgentCard" {
				t.Errorf("it asks by %s %s", method, path)
			}
			got, err := client.Description(server.AppendCard(nil, jsonrpc.ID("1"), []byte(card)))
			if err != nil || string(got) != card {
				t.Errorf("read %s, %v", got, err)
			}
			failure := tc.server.AppendError(nil, jsonrpc.ID("1"), task.Errorf(task.UnsupportedOperation, "none"))
			if _, err := client.Description(failure); task.KindOf(err) != task.UnsupportedOperation {
				t.Errorf("an error is read as %v", err)
			}
			for _, bad := range []string{"", "[", "<html>"} {
				if got, err := client.Description([]byte(bad)); err == nil {
					t.Errorf("%q is read as the card %s", bad, got)
				}
			}
		})
	}
}
