// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The example of the specification, and for ed25519 that of its reference library.
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

func TestVerify(t *testing.T) {
	public := publicKey(t)
	other := encode("whsec_", 1, 32)
	const noMatch = "no signature of the webhook matches a key"
	junk := "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, tt := range []struct {
		name              string
		header, id, stamp string
		body              string
		now               time.Time
		keys              []string
		want              string // "" where it is valid
	}{
		{"HMAC", hmacSignature, messageID, timestamp, message, at, []string{hmacKey}, ""},
		{"ed25519", ed25519Signature, messageID, timestamp, message, at, []string{public}, ""},
		{"both, one known", hmacSignature + " " + ed25519Signature, messageID, timestamp, message, at, []string{public}, ""},
		{"one of two keys", hmacSignature, messageID, timestamp, message, at, []string{other, hmacKey}, ""},
		{"one of many signatures", "v2,AAAA x " + junk + " v1, , v1,!! " + hmacSignature, messageID, timestamp, message, at,
			[]string{hmacKey}, ""},
		{"just in time", hmacSignature, messageID, timestamp, message, at.Add(Tolerance), []string{hmacKey}, ""},
		{"just not too early", hmacSignature, messageID, timestamp, message, at.Add(-Tolerance), []string{hmacKey}, ""},

		{"too late", hmacSignature, messageID, timestamp, message, at.Add(Tolerance + time.Second), []string{hmacKey},
			"the webhook-timestamp is more than 5m0s ago"},
		{"too early", hmacSignature, messageID, timestamp, message, at.Add(-Tolerance - time.Second), []string{hmacKey},
			"the webhook-timestamp is more than 5m0s ahead"},
		{"far ahead", hmacSignature, messageID, "9223372036854775807", message, at, []string{hmacKey},
			"the webhook-timestamp is more than 5m0s ahead"},
		{"another key", hmacSignature, messageID, timestamp, message, at, []string{other}, noMatch},
		{"another id", hmacSignature, "msg_1", timestamp, message, at, []string{hmacKey}, noMatch},
		{"another time", hmacSignature, messageID, "1614265331", message, at, []string{hmacKey}, noMatch},
		{"another body", hmacSignature, messageID, timestamp, message + "\n", at, []string{hmacKey}, noMatch},
		{"another body, ed25519", ed25519Signature, messageID, timestamp, message + "\n", at, []string{public}, noMatch},
		{"another version", "v2" + strings.TrimPrefix(hmacSignature, "v1"), messageID, timestamp, message, at,
			[]string{hmacKey}, noMatch},
		{"HMAC as ed25519", "v1a" + strings.TrimPrefix(hmacSignature, "v1"), messageID, timestamp, message, at,
			[]string{hmacKey, public}, noMatch},
		{"no version", strings.TrimPrefix(hmacSignature, "v1,"), messageID, timestamp, message, at, []string{hmacKey},
			noMatch},
		{"half a signature", hmacSignature[:len(hmacSignature)-4], messageID, timestamp, message, at, []string{hmacKey},
			noMatch},
		{"an empty signature", "v1, v1a,", messageID, timestamp, message, at, []string{hmacKey, public}, noMatch},
		{"no signature", "", messageID, timestamp, message, at, []string{hmacKey}, noMatch},
		{"no id", hmacSignature, "", timestamp, message, at, []string{hmacKey}, "the webhook-id is missing, or has a dot"},
		{"a dot in the id", hmacSignature, "msg.1", timestamp, message, at, []string{hmacKey},
			"the webhook-id is missing, or has a dot"},
		{"no time", hmacSignature, messageID, "", message, at, []string{hmacKey},
			"the webhook-timestamp is not a Unix time in seconds"},
		{"a sign", hmacSignature, messageID, "+" + timestamp, message, at, []string{hmacKey},
			"the webhook-timestamp is not a Unix time in seconds"},
		{"before 1970", hmacSignature, messageID, "-1", message, at, []string{hmacKey},
			"the webhook-timestamp is not a Unix time in seconds"},
		{"a leading zero", hmacSignature, messageID, "0" + timestamp, message, at, []string{hmacKey},
			"the webhook-timestamp is not a Unix time in seconds"},
		{"too large a time", hmacSignature, messageID, "9223372036854775808", message, at, []string{hmacKey},
			"the webhook-timestamp is not a Unix time in seconds"},
		{"too long", strings.Repeat("x", maxHeader+1), messageID, timestamp, message, at, []string{hmacKey},
			"the webhook-signature has 8193 bytes, and at most 8192 are read"},
		{"too many", strings.Repeat(junk+" ", maxSignatures+1), messageID, timestamp, message, at, []string{hmacKey},
			"the webhook-signature has more than 32 signatures"},
		{"no key", hmacSignature, messageID, timestamp, message, at, nil, "there is no key to verify the signature with"},
		{"a good and a bad key", hmacSignature, messageID, timestamp, message, at, []string{hmacKey, "x"},
			"the key must begin with whsec_ (HMAC-SHA256) or whpk_ (ed25519)"},
		{"a short secret", hmacSignature, messageID, timestamp, message, at, []string{"whsec_AAAA"},
			"the secret after whsec_ has 3 bytes, and must have 24 to 64"},
		{"a short public key", hmacSignature, messageID, timestamp, message, at, []string{"whpk_AAAA"},
			"the key after whpk_ has 3 bytes, and must have 32"},
		{"a broken public key", hmacSignature, messageID, timestamp, message, at, []string{"whpk_A"},
			"what follows whpk_ must be base64 of the standard alphabet, padded with =, and nothing else"},
		{"a long key", hmacSignature, messageID, timestamp, message, at, []string{encode("whpk_", 0, 200)},
			"the key has 273 characters, and no key has more than 128"},
		{"a private key", ed25519Signature, messageID, timestamp, message, at, []string{ed25519Key},
			"a receiver verifies by the public half (whpk_) of a key, and must not have the private one (whsk_)"},
	} {
		got := ""
		if err := Verify(tt.header, tt.id, tt.stamp, []byte(tt.body), tt.now, tt.keys...); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
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
		if err := Verify(header, messageID, timestamp, []byte("body"), at, key); err != nil {
			t.Error(err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(hmacSignature, messageID, timestamp, []byte(message))
	f.Add(ed25519Signature, messageID, timestamp, []byte(message))
	f.Add(hmacSignature+" "+ed25519Signature, "a", "0", []byte{})
	f.Add("v1, v1a,=  ,", ".", "-1", []byte("\x00"))
	keys := Keys{mustParse(f, hmacKey), mustParse(f, ed25519Key)}
	public := publicKey(f)
	f.Fuzz(func(t *testing.T, header, id, stamp string, body []byte) {
		if Verify(header, id, stamp, body, at, hmacKey, public) == nil {
			// Only the keys can have made it.
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sent, valid := time.Unix(seconds, 0), false
			for one := range strings.FieldsSeq(keys.Header(id, sent, body)) {
				valid = valid || slices.Contains(strings.Fields(header), one)
			}
			valid = valid && sent.Sub(at).Abs() <= Tolerance
			if !valid {
				t.Errorf("%q is valid for %q, %q and %q", header, id, stamp, body)
			}
		}
		if id == "" || strings.Contains(id, ".") {
			return
		}
		signed := keys.Header(id, at, body)
		for _, key := range []string{hmacKey, public} {
			if err := Verify(signed, id, timestamp, body, at, key); err != nil {
				t.Errorf("%q over %q and %q: %v", signed, id, body, err)
			}
			if Verify(signed, id, timestamp, append([]byte{'x'}, body...), at, key) == nil {
				t.Errorf("%q is valid for another body", signed)
			}
			if Verify(signed, id+"x", timestamp, body, at, key) == nil {
				t.Errorf("%q is valid for another id", signed)
			}
		}
	})
}
