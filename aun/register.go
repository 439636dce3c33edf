// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"errors"
	"fmt"
)

// Register has the gateway at config.URL, or the issuer's, issue a certificate for config.Identity, and sets it there.
// It must lead to config.Roots, if there are any.
func Register(ctx context.Context, config ClientConfig) error {
	id := config.Identity
	config.Peer = id.AID
	c := NewClient(config)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	ws, at, err := c.dial(ctx)
	if err != nil {
		return err
	}
	in := &incoming{challenge: make(chan string, 1)}
	conn := NewConn(ws, in, config.Limits, c.config.Log)
	ended := make(chan *CloseError, 1)
	c.work.Go(func() { ended <- conn.Serve(c.ctx) })
	defer func() {
		conn.Close(CloseNormal, "")
		<-ended
	}()
	if peerMode(at) {
		return errors.New("a peer issues no certificates; name a gateway")
	}
	result, err := conn.Call(ctx, "auth.create_aid", mustJSON(map[string]any{
		"aid": id.AID, "public_key": id.PublicKey(), "curve": id.Curve(),
	}))
	if err != nil {
		return fmt.Errorf("auth.create_aid: %w", err)
	}
	return id.Certify(result.Get("cert").String()+"\n"+result.Get("ca_cert").String(), config.Roots)
}

// Certify sets the certificate of an identity, from PEM with the certificate and those of its issuers. It must lead to
// the roots, if they are not nil.
func (id *Identity) Certify(text string, roots *Roots) error {
	chain, err := ParseChain(text)
	if err != nil {
		return err
	}
	if !id.Key.PublicKey.Equal(chain[0].PublicKey) {
		return errors.New("the certificate is not that of the identity's key")
	}
	if aid, err := aidOf(chain[0]); err != nil || aid != id.AID {
		return fmt.Errorf("the certificate is not that of %s", id.AID)
	}
	if roots != nil {
		if _, err := roots.Verify(id.AID, chain); err != nil {
			return err
		}
	}
	id.Chain = chain
	return nil
}
