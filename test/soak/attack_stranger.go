// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// How hard the stranger attacks: requests a second, or at once. A connection that was closed comes back after a pause.
const (
	comeBack       = 2 * time.Second
	sendersASecond = 20
	loginsASecond  = 20
	waitingConns   = 200
	floods         = 10
	floodFrame     = 900 << 10
)

// hostileStranger has no certificate of a Leader, and no key of an AID.
func hostileStranger(a *attack) []*kind {
	return []*kind{
		{name: "stranger: invented senders", act: a.inventSenders, least: 600},
		{name: "stranger: logins of an honest AID", act: a.claimAID, forbidden: true, least: 600},
		{name: "stranger: connections without a login", act: a.waitForLogin, least: 1500},
		{name: "stranger: large frames before a login", act: a.floodBeforeLogin, least: 200},
		{name: "stranger: forged tokens", act: a.forgeTokens, forbidden: true, least: 150},
	}
}

// inventSenders calls without a certificate, each time under another name.
func (a *attack) inventSenders(ctx context.Context, t *tally) {
	c, err := a.fixture.client(nil)
	if err != nil {
		t.note(err)
		return
	}
	defer c.Close()
	each(ctx, sendersASecond, func(n int) {
		aic, err := identity.MakeV2(identity.FieldsV2{}, devpki.Salt)
		if err == nil {
			call := begin(fmt.Sprint("invented-", n), "slow 10")
			call.Message.SenderID = string(aic)
			call.Terms.Response = time.Millisecond
			_, err = c.Do(ctx, call)
		}
		t.note(err)
	})
}

// claimAID begins logins with the certificate of the honest AID, and ends them with the key of another.
func (a *attack) claimAID(ctx context.Context, t *tally) {
	claimed, own := *a.fixture.honestAID, a.fixture.hostileAID.Key
	claimed.Key = own
	c := a.fixture.aun(&claimed, strangerAddress)
	each(ctx, loginsASecond, func(int) {
		_, err := c.Login(ctx)
		t.note(err)
	})
}

// waitForLogin opens connections, and says nothing on them.
func (a *attack) waitForLogin(ctx context.Context, t *tally) {
	c := a.fixture.aun(a.fixture.hostileAID, strangerAddress)
	atOnce(ctx, waitingConns, comeBack, func(int, int) {
		conn, _, err := c.Open(ctx)
		t.note(err)
		if err == nil {
			_, _, _ = conn.Closed(ctx)
			conn.Cut()
		}
	})
}

// floodBeforeLogin sends requests that are as large as a frame may be after a login, as fast as they are taken.
func (a *attack) floodBeforeLogin(ctx context.Context, t *tally) {
	c := a.fixture.aun(a.fixture.hostileAID, strangerAddress)
	frame := []byte(`{"jsonrpc":"2.0","id":"1","method":"auth.aid_login1","params":{"aid":"` +
		strings.Repeat("x", floodFrame) + `"}}`)
	atOnce(ctx, floods, comeBack, func(int, int) {
		conn, _, err := c.Open(ctx)
		if err != nil {
			t.note(err)
			return
		}
		defer conn.Cut()
		for ctx.Err() == nil && err == nil {
			err = conn.Write(ctx, websocket.MessageText, frame)
			t.note(err)
		}
	})
}

// forgeTokens has the gateway sign what a token consists of, and shows the result as a token of the honest AID.
func (a *attack) forgeTokens(ctx context.Context, t *tally) {
	c := a.fixture.aun(a.fixture.honestAID, strangerAddress) // its certificate, public as every one
	each(ctx, 5, func(int) { t.note(forgeToken(ctx, a.fixture, c)) })
}

func forgeToken(ctx context.Context, s *fixture, c *aunpeer.Client) error {
	unsigned, err := aunpeer.JWT(s.hostileAID.Key, aunIssuer, c.ID.AID, nil)
	if err != nil {
		return err
	}
	unsigned = unsigned[:strings.LastIndexByte(unsigned, '.')]
	conn, _, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer conn.Cut()
	answer, err := conn.Call(ctx, "auth.aid_login1", map[string]any{
		"aid": c.ID.AID, "cert": c.ID.CertPEM(), "client_nonce": unsigned,
	})
	if err != nil {
		return err
	}
	var signed aunpeer.Login1
	if err := json.Unmarshal(answer, &signed); err != nil {
		return err
	}
	der, err := base64.StdEncoding.DecodeString(signed.Signature)
	if err != nil {
		return err
	}
	var point struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &point); err != nil {
		return err
	}
	raw := make([]byte, 64)
	point.R.FillBytes(raw[:32])
	point.S.FillBytes(raw[32:])
	in, _, err := c.Connect(ctx, unsigned+"."+base64.RawURLEncoding.EncodeToString(raw), nil)
	if in != nil {
		in.Cut()
	}
	return err
}
