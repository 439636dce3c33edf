// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestKeyUpdate has a caller change the keys of its connection while the stream rests (RFC 8446 section 4.6.3), and ask
// for new keys of the gateway: it reads the next bytes only if it was given them. The time for the last write of the
// stream may be over by then, if heartbeats are rarer.
func TestKeyUpdate(t *testing.T) {
	var keys bytes.Buffer
	h := serve(t, secure)
	c := h.dial(&keys)
	h.send(c, request)
	taken := <-h.taken
	r := bufio.NewReader(c)
	res := answer(t, r)
	h.write(taken, "first ")
	if err := taken.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil { // the last write's deadline is over
		t.Fatal(err)
	}
	if _, err := c.(*tls.Conn).NetConn().Write(keyUpdate(t, keys.String(), 1)); err != nil {
		t.Fatal(err)
	}
	asynctest.Eventually(t, "the connection has woken", func() bool {
		taken.reading.Lock()
		defer taken.reading.Unlock()
		return taken.wakes > 0
	})
	if err := taken.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil { // the next write's
		t.Fatal(err)
	}
	h.write(taken, "event")
	taken.End(true, true)
	if body, err := io.ReadAll(res.Body); string(body) != "first event" || err != nil {
		t.Errorf("the body is %q, %v", body, err)
	}
	if taken.stray {
		t.Error("new keys count as bytes of the caller")
	}
}

// keyUpdate returns the record of a KeyUpdate requesting another, encrypted as the caller's record with a number.
func keyUpdate(t *testing.T, keyLog string, number uint64) []byte {
	t.Helper()
	var secret []byte
	for line := range strings.Lines(keyLog) {
		if fields := strings.Fields(line); fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, _ = hex.DecodeString(fields[2])
		}
	}
	expand := func(label string, n int) []byte {
		info := binary.BigEndian.AppendUint16(nil, uint16(n))
		info = append(info, byte(len("tls13 "+label)))
		info = append(append(info, "tls13 "+label...), 0)
		out, err := hkdf.Expand(sha256.New, secret, string(info), n)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	block, err := aes.NewCipher(expand("key", 16))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := expand("iv", 12)
	for i, b := range binary.BigEndian.AppendUint64(nil, number) {
		nonce[4+i] ^= b
	}
	const keyUpdateMessage, updateRequested, handshake = 24, 1, 22
	inner := []byte{keyUpdateMessage, 0, 0, 1, updateRequested, handshake}
	header := []byte{23, 3, 3, 0, byte(len(inner) + aead.Overhead())}
	return aead.Seal(header, nonce, inner, header)
}
