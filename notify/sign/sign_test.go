// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
)

// The example of the specification, and for ed25519 the one of its reference library.
const (
	hmacKey    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	ed25519Key = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	messageID  = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	timestamp  = "1614265330"
	message    = `{"test": 2432232314}`

	hmacSignature    = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	ed25519Signature = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
)

var at = time.Unix(1614265330, 0)

func publicKey(t testing.TB) string { return mustParse(t, ed25519Key).Public() }

func TestHeader(t *testing.T) {
	h, e := mustParse(t, hmacKey), mustParse(t, ed25519Key)
	for _, tt := range []struct {
		keys Keys
		want string
	}{
		{nil, ""},
		{Keys{h}, hmacSignature},
		{Keys{e}, ed25519Signature},
		{Keys{h, e}, hmacSignature + " " + ed25519Signature},
		{Keys{e, h, e}, ed25519Signature + " " + hmacSignature + " " + ed25519Signature},
		{Keys{{}, h, {}, e}, hmacSignature + " " + ed25519Signature},
		{Keys{{}}, ""},
	} {
		if diff := cmp.Diff(tt.want, tt.keys.Header(messageID, at.Add(999*time.Millisecond), []byte(message))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.keys, diff)
		}
	}
	if diff := cmp.Diff(timestamp, Timestamp(at.Add(999*time.Millisecond))); diff != "" {
		t.Errorf("the timestamp (-want +got):\n%s", diff)
	}
}

// TestReceiver: a receiver verifying by the specification takes signed notifications, and nothing else.
func TestReceiver(t *testing.T) {
	public := publicKey(t)
	other := encode("whsec_", 1, 32)
	both := hmacSignature + " " + ed25519Signature
	for _, tt := range []struct {
		name          string
		header, stamp string
		body          string
		now           time.Time
		key           string
		valid         bool
	}{
		{"HMAC", hmacSignature, timestamp, message, at, hmacKey, true},
		{"ed25519", ed25519Signature, timestamp, message, at, public, true},
		{"both, one known", both, timestamp, message, at, public, true},
		{"just in time", hmacSignature, timestamp, message, at.Add(signtest.Tolerance), hmacKey, true},
		{"too late", hmacSignature, timestamp, message, at.Add(signtest.Tolerance + 2*time.Second), hmacKey, false},
		{"too early", hmacSignature, timestamp, message, at.Add(-signtest.Tolerance - time.Second), hmacKey, false},
		{"another time", hmacSignature, "1614265331", message, at, hmacKey, false},
		{"another key", both, timestamp, message, at, other, false},
		{"another body", both, timestamp, message + "\n", at, hmacKey, false},
		{"another body, ed25519", both, timestamp, message + "\n", at, public, false},
		{"HMAC as ed25519", "v1a" + strings.TrimPrefix(hmacSignature, "v1"), timestamp, message, at, hmacKey, false},
		{"no signature", "", timestamp, message, at, hmacKey, false},
	} {
		err := signtest.Verify(tt.header, messageID, tt.stamp, []byte(tt.body), tt.now, tt.key)
		if (err == nil) != tt.valid {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The body is signed as it is: not a byte more, and left alone.
func TestHeaderKeepsTheBody(t *testing.T) {
	backing := []byte("body, and what the caller keeps behind it")
	body := backing[:4]
	before := string(backing)
	keys := Keys{mustParse(t, ed25519Key), mustParse(t, hmacKey)}
	header := keys.Header(messageID, at, body)
	if diff := cmp.Diff(before, string(backing)); diff != "" {
		t.Errorf("after signing (-want +got):\n%s", diff)
	}
	for _, key := range []string{publicKey(t), hmacKey} {
		if err := signtest.Verify(header, messageID, timestamp, []byte("body"), at, key); err != nil {
			t.Error(err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(messageID, []byte(message))
	f.Add("a", []byte{})
	f.Add("\x00", []byte("\x00"))
	keys := Keys{mustParse(f, hmacKey), mustParse(f, ed25519Key)}
	public := publicKey(f)
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		if id == "" || strings.Contains(id, ".") {
			return
		}
		signed := keys.Header(id, at, body)
		for _, key := range []string{hmacKey, public} {
			if err := signtest.Verify(signed, id, timestamp, body, at, key); err != nil {
				t.Errorf("%q over %q and %q: %v", signed, id, body, err)
			}
			if signtest.Verify(signed, id, timestamp, append([]byte{'x'}, body...), at, key) == nil {
				t.Errorf("%q is valid for another body", signed)
			}
			if signtest.Verify(signed, id+"x", timestamp, body, at, key) == nil {
				t.Errorf("%q is valid for another id", signed)
			}
		}
	})
}
