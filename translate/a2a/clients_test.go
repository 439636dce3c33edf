// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

func TestClients(t *testing.T) {
	for _, d := range []struct {
		client translate.Client
		server translate.Server
	}{
		{a2a.Legacy(), a2a.LegacyServer(false)}, {a2a.V03(), a2a.V03Server(false)},
		{a2a.V1(), a2a.V1Server(false)}, {a2a.V1REST(), a2a.V1RESTServer(false)},
		{a2a.V1GRPC(), a2a.V1GRPCServer(false)},
	} {
		t.Run(d.client.Name(), func(t *testing.T) { translatetest.Client(t, d.client, d.server) })
	}
}

func FuzzLegacyText(f *testing.F) { translatetest.FuzzTexts(f, a2a.Legacy(), a2a.LegacyServer(false)) }

func FuzzV03Text(f *testing.F) { translatetest.FuzzTexts(f, a2a.V03(), a2a.V03Server(false)) }

func FuzzV1Text(f *testing.F) { translatetest.FuzzTexts(f, a2a.V1(), a2a.V1Server(false)) }

func FuzzV1RESTText(f *testing.F) { translatetest.FuzzTexts(f, a2a.V1REST(), a2a.V1RESTServer(false)) }

func FuzzV1GRPCText(f *testing.F) { translatetest.FuzzTexts(f, a2a.V1GRPC(), a2a.V1GRPCServer(false)) }
