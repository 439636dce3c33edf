// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestTokenClocks: the clocks of a token's signer, another gateway of the same AID or another issuer, and of its reader
// may differ by a minute.
func TestTokenClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func() *ecdsa.PrivateKey {
			k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		own, foreign := key(), key()
		all := &tokens{issuer: "auth.own.test", key: own, kid: "k",
			foreign: map[string][]*ecdsa.PublicKey{"aid.pub": {&foreign.PublicKey}}}
		for _, by := range []struct {
			issuer string
			aid    AID
			key    *ecdsa.PrivateKey
		}{{"auth.aid.pub", "alice.aid.pub", foreign}, {"auth.own.test", "alice.own.test", own}} {
			for ahead, want := range map[time.Duration]bool{
				-time.Hour: true, -time.Hour - 50*time.Second: true, -time.Hour - 70*time.Second: false,
				0: true, 50 * time.Second: true, 70 * time.Second: false,
			} {
				now := time.Now().Add(ahead)
				signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: by.key}, nil)
				if err != nil {
					t.Fatal(err)
				}
				token, err := jwt.Signed(signer).Claims(claims{AID: by.aid, Claims: jwt.Claims{Issuer: by.issuer,
					Audience: jwt.Audience{accessAudience}, IssuedAt: jwt.NewNumericDate(now),
					Expiry: jwt.NewNumericDate(now.Add(time.Hour))}}).Serialize()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := all.check(token, accessAudience); (err == nil) != want {
					t.Errorf("%s, %v ahead: %v", by.issuer, ahead, err)
				}
			}
		}
	})
}
