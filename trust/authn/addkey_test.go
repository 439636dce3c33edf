// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddKey makes a file of keys, one after the other, and has their holders recognised.
func TestAddKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	keys := make(map[string]string)
	for _, name := range []string{"one", "two"} {
		key, line, err := MakeKey(name)
		if err == nil {
			err = AddKey(file, line)
		}
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	content, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(content), KeyPrefix) {
		t.Errorf("the file holds a key, %v", err)
	}
	read, err := ReadKeys(file, "")
	if err != nil {
		t.Fatal(err)
	}
	a := Authenticator{Keys: read}
	for name, key := range keys {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		if peer, err := a.Authenticate(r); err != nil || peer.Leader() != "key:"+name {
			t.Errorf("the holder of the key %s is %q, %v", name, peer.Leader(), err)
		}
	}
}

// TestAddKeyRefuses adds lines to files. A gateway would then refuse these.
func TestAddKeyRefuses(t *testing.T) {
	_, line, err := MakeKey("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, content string
		mode          os.FileMode
		want          string
	}{
		{"two keys of one name", line + "\n", 0o600, "the name one is there twice"},
		{"a plain key", "two aipk_secret\n", 0o600, "there is a plain key"},
		{"a file for all", "# keys\n", 0o644, "may be read by others"},
		{"no end of line", "# keys", 0o600, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(file, []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			err := AddKey(file, line)
			if tt.want == "" {
				if _, read := ReadKeys(file, ""); err != nil || read != nil {
					t.Errorf("%v, %v", err, read)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v", err)
			}
			if content, _ := os.ReadFile(file); string(content) != tt.content {
				t.Errorf("the file has become %q", content)
			}
		})
	}
}
