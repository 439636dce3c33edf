// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
)

// TestKeys: a key proves its name, by the bearer token or by a header.
func TestKeys(t *testing.T) {
	key, line, err := MakeKey("billing")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := MakeKey("other")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("# whose\n\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	is, invalid := who{Proof: "key", Leader: "key:billing"}, who{Err: identity.ErrInvalid.Error()}
	malformed := who{Err: identity.ErrMalformed.Error()}
	for name, tc := range map[string]struct {
		header string
		sent   map[string][]string
		want   who
	}{
		"a bearer token": {"", map[string][]string{"Authorization": {"Bearer " + key}}, is},
		"in lower case":  {"", map[string][]string{"Authorization": {"bearer  " + key}}, is},
		"nothing":        {"", nil, who{}},
		"another scheme": {"", map[string][]string{"Authorization": {"Basic " + key}}, who{}},
		"an unknown key": {"", map[string][]string{"Authorization": {"Bearer " + other}}, invalid},
		"no key":         {"", map[string][]string{"Authorization": {"Bearer x"}}, invalid},
		"no token":       {"", map[string][]string{"Authorization": {"Bearer"}}, who{}},
		"two tokens in a field": {
			"", map[string][]string{"Authorization": {"Bearer " + key + ", Bearer " + key}}, malformed,
		},
		"two fields": {
			"", map[string][]string{"Authorization": {"Bearer " + key, "Bearer " + key}}, malformed,
		},
		"a header":                  {"x-api-key", map[string][]string{"X-API-Key": {key}}, is},
		"a header twice":            {"x-api-key", map[string][]string{"X-API-Key": {key, key}}, malformed},
		"an unknown key in it":      {"x-api-key", map[string][]string{"X-API-Key": {other}}, invalid},
		"a token beside the header": {"x-api-key", map[string][]string{"Authorization": {"Bearer " + key}}, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ReadKeys(file, tc.header)
			if err != nil {
				t.Fatal(err)
			}
			peer, err := (&Authenticator{Keys: keys}).Authenticate(request("10.9.9.9:1", tc.sent))
			if diff := cmp.Diff(tc.want, whoOf(peer, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err != nil && (strings.Contains(err.Error(), key) || strings.Contains(err.Error(), other)) {
				t.Errorf("the error holds a key: %v", err)
			}
		})
	}
}

// TestKeyFiles: a mistake in a file of keys is named, by its line.
func TestKeyFiles(t *testing.T) {
	key, line, err := MakeKey("a")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("x"))
	for content, want := range map[string]string{
		"":                                       "there is no key",
		"# a comment":                            "there is no key",
		"a " + key:                               "line 1: there is a plain key",
		key:                                      "line 1: there is a plain key",
		"\na":                                    "line 2: write a name and sha256:",
		"a b c":                                  "line 1: write a name and sha256:",
		"a sha256:00":                            "line 1: the hash of a is not",
		"a sha512:" + hex.EncodeToString(sum[:]): "line 1: the hash of a is not",
		"a sha256:" + strings.Repeat("zz", 32):   "line 1: the hash of a is not",
		"a sha256:" + strings.Repeat("00", 33):   "line 1: the hash of a is not",
		"ä sha256:" + strings.Repeat("00", 32):   "is no name of a key",
		line + "\n" + line:                       "line 2: the name a is there twice",
		line + "\nb" + line[1:]:                  "line 2: b has the key of a",
	} {
		_, err := parseKeys([]byte(content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("the error holds the key: %v", err)
		}
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeys(file, ""); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
}

// newKey makes a key with the name k, and the keys of a gateway with it.
func newKey(t *testing.T) (string, *Keys) {
	t.Helper()
	key, line, err := MakeKey("k")
	if err != nil {
		t.Fatal(err)
	}
	names, err := parseKeys([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return key, &Keys{names: names}
}

// FuzzKeys: an accepted file of keys has a name for each hash.
func FuzzKeys(f *testing.F) {
	_, line, err := MakeKey("a")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(line))
	f.Add([]byte("# x\n\n" + line + "\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		names, err := parseKeys(content)
		if err == nil && len(names) == 0 {
			t.Error("no keys")
		}
		for _, name := range names {
			if checkKeyName(name) != nil {
				t.Errorf("the name %q", name)
			}
		}
	})
}
