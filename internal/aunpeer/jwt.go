// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"time"
)

// JWT returns a token of the authentication service of an issuer for an AID, signed with key and valid for an hour.
// change replaces some of its claims; a nil claim is left out.
func JWT(key *ecdsa.PrivateKey, issuer, aid string, change map[string]any) (string, error) {
	now := time.Now()
	claims := map[string]any{
		"aid": aid, "sub": aid, "iss": "auth." + issuer, "aud": "aun", "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	algorithm, size := "ES256", 32
	if key.Curve == elliptic.P384() {
		algorithm, size = "ES384", 48
	}
	header, err := json.Marshal(map[string]any{"alg": algorithm, "typ": "JWT", "kid": "1"})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	r, s, err := ecdsa.Sign(rand.Reader, key, digest(&key.PublicKey, text))
	if err != nil {
		return "", err
	}
	signature := make([]byte, 2*size)
	r.FillBytes(signature[:size])
	s.FillBytes(signature[size:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// PublicPEM returns the public key of the identity.
func (id *Identity) PublicPEM() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&id.Key.PublicKey)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), err
}
