// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A list of a URL is kept in a file of Config.Dir, as PEM behind the certificate of its issuer. The name of the file is
// made of the URL. Its time is when the URL has last given the list.

const pemCertificate = "CERTIFICATE"

func cacheName(dir, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(dir, fmt.Sprintf("%x.crl", sum[:16]))
}

// keep keeps the list of a URL on disk; der is nil if it comes from there. c.mu is held.
func (c *Checker) keep(at *location, der []byte) {
	if at.cache == "" || der == nil {
		return
	}
	content := pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: at.current.authority.Raw})
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: pemList, Bytes: der})...)
	if err := replace(at.cache, content); err != nil {
		c.log.Warn("a revocation list cannot be kept on disk, so a start without a network will not have it",
			"source", at.name, "error", err)
	}
}

// replace writes a file, so that it is there whole or as it was.
func replace(name string, content []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// recall reads the list of a URL that was kept on disk.
func (c *Checker) recall(at *location) {
	err := c.recallFrom(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a revocation list that was kept on disk cannot be read", "source", at.name, "error", err)
	}
}

func (c *Checker) recallFrom(at *location) error {
	file, err := os.Open(at.cache)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(file, 2*c.config.MaxSize+(64<<10))) // PEM is larger than what is in it
	if err != nil {
		return err
	}
	block, rest := pem.Decode(content)
	if block == nil || block.Type != pemCertificate {
		return errSyntax
	}
	issuer, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	l, err := readList(bytes.TrimSpace(rest))
	if err != nil {
		return err
	}
	l.der, l.got = nil, info.ModTime()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := *c.known.Load(); find(known, issuer) == nil && len(known) < maxAuthorities {
		known = append(slices.Clone(known), &authority{cert: issuer})
		c.known.Store(&known)
	}
	if _, err := c.offer(at, l); err != nil {
		return err
	}
	c.arrange()
	return nil
}
