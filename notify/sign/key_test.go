// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
)

// encode returns a key as text, with n bytes rising from first.
func encode(prefix string, first byte, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return prefix + base64.StdEncoding.EncodeToString(b)
}

func mustParse(t testing.TB, s string) Key {
	t.Helper()
	k, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParse(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	private := ed25519.NewKeyFromSeed(seed)
	public := "whpk_" + base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	for _, tt := range []struct {
		key, public, text string
	}{
		{encode("whsec_", 0, 24), "", "whsec_[redacted]"},
		{encode("whsec_", 0, 32), "", "whsec_[redacted]"},
		{encode("whsec_", 0, 64), "", "whsec_[redacted]"},
		{"whsk_" + base64.StdEncoding.EncodeToString(seed), public, "whsk_[redacted]"},
		{"whsk_" + base64.StdEncoding.EncodeToString(private), public, "whsk_[redacted]"},
	} {
		k := mustParse(t, tt.key)
		if diff := cmp.Diff([]string{tt.public, tt.text}, []string{k.Public(), k.String()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.key, diff)
		}
	}
	var none Key
	if diff := cmp.Diff([]string{"", "no key"}, []string{none.Public(), none.String()}); diff != "" {
		t.Errorf("the zero Key (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const (
		prefix  = "the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ (ed25519)"
		base    = "what follows whsec_ must be base64 of the standard alphabet, padded with =, and nothing else"
		baseKey = "what follows whsk_ must be base64 of the standard alphabet, padded with =, and nothing else"
	)
	wrongHalves := append(bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)...)
	for _, tt := range []struct{ key, want string }{
		{"", prefix},
		{encode("", 0, 32), prefix},
		{encode("WHSEC_", 0, 32), prefix},
		{" " + encode("whsec_", 0, 32), prefix},
		{"whsec_", "the secret after whsec_ has 0 bytes, and must have 24 to 64"},
		{encode("whsec_", 0, 23), "the secret after whsec_ has 23 bytes, and must have 24 to 64"},
		{encode("whsec_", 0, 65), "the secret after whsec_ has 65 bytes, and must have 24 to 64"},
		{encode("whsec_", 0, 100), "the signing key has 142 characters, and no key has more than 128"},
		{encode("whsec_", 0, 32) + "\n", base},
		{strings.TrimRight(encode("whsec_", 0, 32), "="), base},
		{strings.Replace(encode("whsec_", 0xf0, 32), "/", "_", 1), base},
		{"whsec_[redacted]", base},
		{"whsk_", "the key after whsk_ has 0 bytes, and must have 32 (the seed) or 64 (with the public key)"},
		{encode("whsk_", 0, 31), "the key after whsk_ has 31 bytes, and must have 32 (the seed) or 64 (with the public key)"},
		{encode("whsk_", 0, 33), "the key after whsk_ has 33 bytes, and must have 32 (the seed) or 64 (with the public key)"},
		{"whsk_" + base64.StdEncoding.EncodeToString(wrongHalves),
			"the private and the public half of the key after whsk_ do not belong together"},
		{encode("whsk_", 0, 32) + " ", baseKey},
		{encode("whpk_", 0, 32), "the signing key is a public one (whpk_); give its private half (whsk_)"},
	} {
		k, err := Parse(tt.key)
		if err == nil {
			t.Errorf("%q is parsed", tt.key)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.key, diff)
		}
		if k.reveal != nil {
			t.Errorf("%q: a key beside the error", tt.key)
		}
	}
}

func TestGenerate(t *testing.T) {
	for _, tt := range []struct {
		generate func() string
		prefix   string
	}{{Generate, "whsk_"}, {GenerateHMAC, "whsec_"}} {
		one, two := tt.generate(), tt.generate()
		if one == two {
			t.Errorf("%s is made twice", one)
		}
		for _, s := range []string{one, two} {
			if diff := cmp.Diff(tt.prefix+"[redacted]", mustParse(t, s).String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

// However a key is printed, by itself or inside something else, it does not show.
func TestKeyIsHidden(t *testing.T) {
	type open struct{ Key Key }
	type closed struct {
		key  Key
		keys Keys
	}
	secret := "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	hidden := []string{secret, encoded, encoded[:12], fmt.Sprintf("%x", secret)[:12], fmt.Sprintf("%X", secret)[:12],
		"65 66 67", "65, 66, 67", "0x41", "41 42", "%!"}
	for _, prefix := range []string{"whsec_", "whsk_"} {
		k := mustParse(t, prefix+encoded)
		var shown []string
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%c", "%U", "%t", "%e"} {
			shown = append(shown, fmt.Sprintf(verb, k), fmt.Sprintf(verb, &k), fmt.Sprintf(verb, Keys{k}),
				fmt.Sprintf(verb, open{k}))
			// fmt cannot ask an unexported field; it shows an address there.
			inner := fmt.Sprintf(verb, closed{k, Keys{k}})
			shown = append(shown, strings.ReplaceAll(inner, "%!", ""))
		}
		shown = append(shown, k.GoString(), fmt.Sprint(k), fmt.Sprintln(k))
		asJSON, err := json.Marshal(map[string]any{"key": k, "keys": Keys{k}, "open": open{k}, "closed": closed{k, Keys{k}}})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(handler).Info("x", "key", k, "keys", Keys{k}, "open", open{k}, "closed", closed{k, Keys{k}})
		}
		shown = append(shown, string(asJSON), log.String())
		for _, s := range shown {
			for _, h := range hidden {
				if strings.Contains(s, h) {
					t.Errorf("%q shows %q", s, h)
				}
			}
		}
		if diff := cmp.Diff(`"`+prefix+`[redacted]"`, jsonOf(t, k)); diff != "" {
			t.Errorf("as JSON (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{prefix + "[redacted]", prefix + "[redacted]"},
			[]string{fmt.Sprintf("%d", k), fmt.Sprintf("%#v", k)}); diff != "" {
			t.Errorf("printed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(prefix+"[redacted]", k.LogValue().String()); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		encode("whsec_", 0, 24), encode("whsec_", 0, 64), encode("whsk_", 0, 32), encode("whsk_", 0, 64),
		encode("whpk_", 0, 32),
		"whsec_", "whsk_=", "", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA\nAAAA",
		"whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := Parse(s)
		if err != nil {
			// The error may name a prefix, and nothing behind it.
			if _, rest, _ := strings.Cut(s, "_"); len(rest) > 8 && strings.Contains(err.Error(), rest) {
				t.Errorf("the error of %q holds it: %v", s, err)
			}
			return
		}
		verifying := k.Public()
		if verifying == "" {
			verifying = s
		}
		header := Keys{k}.Header("msg_1", at, []byte(s))
		if err := signtest.Verify(header, "msg_1", Timestamp(at), []byte(s), at, verifying); err != nil {
			t.Errorf("%q signs %q, which is not valid: %v", s, header, err)
		}
	})
}
