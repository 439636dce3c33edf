// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A list of a URL is kept in a file of Config.Dir, in DER before the certificate of its issuer. The name of the file is
// made of the URL. Its time is when the URL has last given the list.

func cacheName(dir, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(dir, fmt.Sprintf("%x.crl", sum[:16]))
}

// keep keeps the list of a URL that is in use on disk, with the time when the URL has last given it. c.mu is not held,
// so that no handshake waits for the disk.
func (c *Checker) keep(at *location) {
	if at.cache == "" {
		return
	}
	at.keeping.Lock()
	defer at.keeping.Unlock()
	c.mu.Lock()
	l, spool := at.current, ""
	if l != nil {
		spool, l.spool = l.spool, ""
	}
	c.mu.Unlock()
	if spool != "" {
		if err := l.write(spool, at.cache); err != nil {
			c.cannotKeep(at, err)
			_ = os.Remove(spool)
			return
		}
		at.kept = l
	}
	if l != nil && l == at.kept {
		// The time of the file is all that a later start knows; without it the list seems older, which is safe.
		given := time.Unix(0, at.given.Load())
		_ = os.Chtimes(at.cache, given, given)
	}
}

// keepSoon is keep for a caller that holds c.mu. After Close, nothing is kept.
func (c *Checker) keepSoon(at *location) {
	if !c.closed {
		c.work.Go(func() { c.keep(at) })
	}
}

// write completes the file that has the list, and has it replace another one.
func (l *list) write(spool, name string) error {
	file, err := os.OpenFile(spool, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(l.authority.Raw)
	return finish(file, name, err)
}

func (c *Checker) cannotKeep(at *location, err error) {
	c.log.Warn("a revocation list cannot be kept on disk, so a start without a network will not have it",
		"source", at.name, "error", err)
}

const newFiles = ".new-"

// newFile opens a file that is to replace another one.
func newFile(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(name), newFiles+"*")
}

// finish has a file replace another one, so that this is there whole or as it was; err is why it was not written.
func finish(file *os.File, name string, err error) error {
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	return err
}

// replace writes a file, so that it is there whole or as it was.
func replace(name string, content []byte) error {
	file, err := newFile(name)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = finish(file, name, err); err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// openKept opens a file that was kept, and returns when its contents came: never after now, though the clock may have
// been ahead then.
func openKept(name string) (file *os.File, got time.Time, err error) {
	if file, err = os.Open(name); err != nil {
		return nil, got, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, got, err
	}
	if got = info.ModTime(); got.After(time.Now()) {
		got = time.Now()
	}
	return file, got, nil
}

// recall reads the list of a URL that was kept on disk.
func (c *Checker) recall(at *location) {
	err := c.recallFrom(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a revocation list that was kept on disk cannot be read", "source", at.name, "error", err)
	}
}

func (c *Checker) recallFrom(at *location) error {
	file, got, err := openKept(at.cache)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	l, rest, err := readList(file, c.config.MaxSize, nil)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(rest, maxPart))
	if err != nil {
		return err
	}
	issuer, err := x509.ParseCertificate(raw)
	if err != nil {
		return err
	}
	l.got = got
	at.keeping.Lock()
	defer at.keeping.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admit(issuer)
	known := *c.known.Load()
	if _, err := c.offer(at, l, known); err != nil {
		return err
	}
	at.kept = l
	c.arrange(known)
	return nil
}
