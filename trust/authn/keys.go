// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
)

// KeyPrefix begins every key, so tools in search of secrets find a lost one.
const KeyPrefix = "aipk_"

// keySize is the number of random bytes of a key. So many cannot be guessed, and a plain hash of them cannot be
// reversed.
const keySize = 32

// Bounds of a file of keys.
const (
	maxKeyFile = 1 << 20
	maxKeyName = 64
)

// Keys are the keys of callers, proofs of their identities. It may be used by any number of goroutines at once.
type Keys struct {
	header string // in its canonical form; empty for Authorization
	names  map[[sha256.Size]byte]string
}

// has reports whether there is a key with a name.
func (k *Keys) has(name string) bool {
	for _, n := range k.names {
		if n == name {
			return true
		}
	}
	return false
}

// hashPrefix begins the hash of a key in a file.
const hashPrefix = "sha256:"

// MakeKey makes a key, and its line for a file of keys.
func MakeKey(name string) (key, line string, err error) {
	if err := checkKeyName(name); err != nil {
		return "", "", err
	}
	var random [keySize]byte
	_, _ = rand.Read(random[:]) // never fails
	key = KeyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(key))
	return key, name + " " + hashPrefix + hex.EncodeToString(sum[:]), nil
}

func checkKeyName(name string) error {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@", r)
	}
	if name == "" || len(name) > maxKeyName || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) }) {
		return fmt.Errorf("%.80q is no name of a key: use 1 to %d letters, digits, and . _ - @", name, maxKeyName)
	}
	return nil
}

// ReadKeys reads a file of keys. Only its owner may read it. Keys come in a header, or by the bearer token if header is
// empty. An error holds no key.
func ReadKeys(file, header string) (*Keys, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkPrivate(f); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxKeyFile {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxKeyFile)
	}
	k := &Keys{header: http.CanonicalHeaderKey(header)}
	if k.names, err = parseKeys(content); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// checkPrivate checks that only the owner of a file may read it.
func checkPrivate(f *os.File) error {
	about, err := f.Stat()
	if err != nil {
		return err
	}
	if about.Mode().Perm()&0o077 != 0 && about.Mode()&fs.ModeType == 0 {
		return fmt.Errorf("%s may be read by others: run chmod 600 %s", f.Name(), f.Name())
	}
	return nil
}

// parseKeys parses the lines of a file of keys: a name and a hash each. Empty lines, and lines with # at the begin, are
// comments.
func parseKeys(content []byte) (map[[sha256.Size]byte]string, error) {
	names := make(map[[sha256.Size]byte]string)
	seen := make(map[string]bool)
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		name, sum, err := parseKey(fields)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case seen[name]:
			return nil, fmt.Errorf("line %d: the name %s is there twice", n, name)
		case names[sum] != "":
			return nil, fmt.Errorf("line %d: %s has the key of %s", n, name, names[sum])
		}
		seen[name], names[sum] = true, name
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there is no key; caddy aip key makes one")
	}
	return names, nil
}

func parseKey(fields []string) (name string, sum [sha256.Size]byte, err error) {
	for _, f := range fields {
		if strings.Contains(f, KeyPrefix) {
			return "", sum, errors.New("there is a plain key; give its holder the key, and write its hash here, " +
				"as caddy aip key prints it")
		}
	}
	if len(fields) != 2 {
		return "", sum, errors.New("write a name and " + hashPrefix + " with the hash of its key, as caddy aip key prints it")
	}
	if err := checkKeyName(fields[0]); err != nil {
		return "", sum, err
	}
	digits, ok := strings.CutPrefix(fields[1], hashPrefix)
	if n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*len(sum))])); !ok || err != nil || n != len(sum) ||
		len(digits) != 2*len(sum) {
		return "", sum, fmt.Errorf("the hash of %s is not %s and 64 hexadecimal digits", fields[0], hashPrefix)
	}
	return fields[0], sum, nil
}

// peer returns the peer proven by a key. The time of the search depends on the hash alone, and a caller cannot choose
// the hash.
func (k *Keys) peer(key string) (identity.Peer, error) {
	name, ok := k.names[sha256.Sum256([]byte(key))]
	if !ok {
		return identity.Peer{}, invalid("The key is not one of this gateway.")
	}
	return identity.Peer{Proof: identity.ByKey, Kind: identity.KeyKind, ID: name}, nil
}
