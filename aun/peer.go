// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// PeerLogin is the server side of the login of peer mode, on one connection: initialize, peer.hello and peer.confirm,
// in this order. It is used by one goroutine at a time.
type PeerLogin struct {
	identity *Identity
	roots    *Roots

	version string
	cert    *Certificate
	nonce   string // for the peer to sign; empty when it is used
	expires time.Time
}

// NewPeerLogin returns the login of one connection.
func NewPeerLogin(identity *Identity, roots *Roots) *PeerLogin {
	return &PeerLogin{identity: identity, roots: roots}
}

// Initialize is the request initialize.
func (l *PeerLogin) Initialize(params gjson.Result) ([]byte, error) {
	if mode := params.Get("mode").String(); mode != "peer" {
		return nil, Errorf(codes.InvalidParams, "mode must be peer")
	}
	var err error
	if l.version, err = commonVersion(params.Get("protocol"), peerVersions); err != nil {
		return nil, err
	}
	return mustJSON(map[string]any{
		"protocol": l.version, "mode": "peer", "server": l.identity.AID, "server_time": time.Now().UnixMilli(),
	}), nil
}

// Hello is the request peer.hello: the peer presents its certificate and a nonce, and gets the same in return.
func (l *PeerLogin) Hello(params gjson.Result) ([]byte, error) {
	aid, err := l.identity.clientAID(params)
	if err != nil {
		return nil, err
	}
	theirs := params.Get("nonce").String()
	if !asksService(theirs) {
		return nil, badNonce("nonce")
	}
	if l.version == "" { // some peers send hello without initialize
		if l.version, err = commonVersion(params.Get("protocol"), peerVersions); err != nil {
			return nil, err
		}
	}
	chain, err := ParseChain(params.Get("cert").String())
	if err != nil {
		return nil, err
	}
	if l.cert, err = l.roots.Verify(aid, chain); err != nil {
		return nil, err
	}
	signature, err := l.identity.Sign(theirs)
	if err != nil {
		return nil, err
	}
	l.nonce, l.expires = peerNonce(), time.Now().Add(nonceLife)
	return mustJSON(map[string]any{
		"aid": l.identity.AID, "cert": l.identity.CertPEM(), "nonce": l.nonce, "nonce_signature": signature,
		"protocol": l.version,
	}), nil
}

// Confirm is the request peer.confirm: the peer presents the signed nonce, and is known from then on.
func (l *PeerLogin) Confirm(params gjson.Result) ([]byte, Proof, error) {
	nonce := l.nonce
	l.nonce = ""
	if nonce == "" || time.Now().After(l.expires) {
		return nil, Proof{}, Errorf(codes.CertificateInvalid, "There is no nonce to confirm, or it has expired")
	}
	if err := Verify(l.cert.Key, nonce, params.Get("nonce_signature").String()); err != nil {
		return nil, Proof{}, err
	}
	return mustJSON(map[string]any{
		"status": "ok", "authenticated": true, "identity": map[string]any{"aid": l.cert.AID},
	}), l.cert.proof(), nil
}

// ConnectPeer is the client side of peer mode: it logs in on a served connection, to the peer with a given AID.
func ConnectPeer(ctx context.Context, c *Conn, id *Identity, roots *Roots, want AID) (Proof, error) {
	result, err := c.Call(ctx, "initialize", mustJSON(map[string]any{
		"mode": "peer", "protocol": Version, "clientInfo": map[string]string{"name": "aip-gateway"},
	}))
	if err != nil {
		return Proof{}, fmt.Errorf("initialize: %w", err)
	}
	version := Version
	if v := result.Get("protocol").String(); v == peerVersions[1] {
		version = v
	}
	ours := serviceNonce()
	result, err = c.Call(ctx, "peer.hello", mustJSON(map[string]any{
		"aid": id.AID, "cert": id.CertPEM(), "nonce": ours, "protocol": version,
	}))
	if err != nil {
		return Proof{}, fmt.Errorf("peer.hello: %w", err)
	}
	chain, err := ParseChain(result.Get("cert").String())
	if err != nil {
		return Proof{}, err
	}
	cert, err := roots.Verify(want, chain)
	if err != nil {
		return Proof{}, err
	}
	if err := Verify(cert.Key, ours, result.Get("nonce_signature").String()); err != nil {
		return Proof{}, err
	}
	theirs := result.Get("nonce").String()
	if !asksPeer(theirs) {
		return Proof{}, errors.New("aun: the peer has sent no nonce that may be signed")
	}
	signature, err := id.Sign(theirs)
	if err != nil {
		return Proof{}, err
	}
	result, err = c.Call(ctx, "peer.confirm", mustJSON(map[string]any{"nonce_signature": signature}))
	if err != nil {
		return Proof{}, fmt.Errorf("peer.confirm: %w", err)
	}
	if result.Get("status").String() != "ok" {
		return Proof{}, errors.New("aun: the peer has not confirmed the login")
	}
	if err := c.Notify(ctx, "notification/initialized", []byte("{}")); err != nil {
		return Proof{}, err
	}
	return cert.proof(), nil
}
