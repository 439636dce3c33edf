// SPDX-License-Identifier: Apache-2.0

package devpki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxPEM is the largest size of a PEM file, in bytes.
const maxPEM = 64 << 10

// errNoPair is the error if neither of the two files exists.
var errNoPair = errors.New("no certificate and no key")

// sign makes a key and signs a certificate for it. Without a CA, the certificate is self-signed.
func sign(template *x509.Certificate, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	// CreateCertificate chooses the serial number.
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &pair{cert, key}, nil
}

func readPair(f *File) (*pair, error) {
	certDER, certErr := readPEM(f.Cert, "CERTIFICATE")
	keyDER, keyErr := readPEM(f.Key, "PRIVATE KEY")
	switch {
	case errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist):
		return nil, errNoPair
	case certErr != nil:
		return nil, certErr
	case keyErr != nil:
		return nil, keyErr
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Cert, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as a private key", f.Key)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an ECDSA key", f.Key)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", f.Key, f.Cert)
	}
	return &pair{cert, key}, nil
}

func readPEM(path, kind string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPEM {
		return nil, fmt.Errorf("%s has %d bytes, too many for a PEM file", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s has no PEM block %q at its beginning", path, kind)
	}
	return block.Bytes, nil
}

// writePair writes the key first, so a certificate never exists without its key.
func writePair(f *File, p *pair) error {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	if err := writePEM(f.Key, "PRIVATE KEY", der, 0o600); err != nil {
		return err
	}
	return writePEM(f.Cert, "CERTIFICATE", p.cert.Raw, 0o644)
}

// writePEM replaces a file atomically. CreateTemp uses mode 0600, so a key is never readable by others.
func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = pem.Encode(tmp, &pem.Block{Type: kind, Bytes: der})
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
