// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bufio"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Each list of a URL is kept in a file of Config.Dir, in DER before the certificate of its issuer. The name of the file
// is made of the URL, and of the list's slot if that is not 0. Its time is the last time the URL gave the list.

func cacheName(dir, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(dir, fmt.Sprintf("%x.crl", sum[:16]))
}

// slotName returns the name of the file of a slot.
func (at *location) slotName(slot int) string {
	if slot == 0 {
		return at.cache
	}
	return fmt.Sprintf("%s-%d.crl", strings.TrimSuffix(at.cache, ".crl"), slot)
}

// keep keeps on disk the lists in use of a URL, with the last time the URL gave them. c.mu is not held, so no handshake
// waits for the disk.
func (c *Checker) keep(at *location) {
	if at.cache == "" {
		return
	}
	at.keeping.Lock()
	defer at.keeping.Unlock()
	c.mu.Lock()
	current := slices.Clone(at.current)
	spools := make([]string, len(current))
	for i, l := range current {
		spools[i], l.spool = l.spool, ""
	}
	c.mu.Unlock()
	used := make(map[int]bool)
	for i, l := range current {
		name := at.slotName(l.slot)
		used[l.slot] = true
		if spools[i] != "" {
			if err := l.write(spools[i], name); err != nil {
				c.cannotKeep(at, err)
				_ = os.Remove(spools[i])
				continue
			}
			at.kept[l.slot] = l
		}
		if at.kept[l.slot] == l {
			// A later start knows only the time of the file; without it the list seems older, which is safe.
			given := time.Unix(0, l.given.Load())
			_ = os.Chtimes(name, given, given)
		}
	}
	for slot := range at.kept {
		if !used[slot] {
			_ = os.Remove(at.slotName(slot))
			delete(at.kept, slot)
		}
	}
}

// keepSoon is keep for a caller holding c.mu. After Close, nothing is kept.
func (c *Checker) keepSoon(at *location) {
	if !c.closed {
		c.work.Go(func() { c.keep(at) })
	}
}

// write completes the file of the list, and has it replace another one.
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

// newFile opens a file to replace another one.
func newFile(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(name), newFiles+"*")
}

// finish has a file replace another one, so the other is there whole or as it was; err is the reason the file was not
// written.
func finish(file *os.File, name string, err error) error {
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	return err
}

// replace writes a file, so it is there whole or as it was.
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

// openKept opens a kept file, and returns the time its contents came: never after now, though the clock may have been
// ahead then.
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

// recall reads the lists of a URL kept on disk.
func (c *Checker) recall(at *location) {
	for slot := range maxLists {
		err := c.recallFrom(at, slot)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("a revocation list that was kept on disk cannot be read", "source", at.name, "error", err)
		}
	}
}

func (c *Checker) recallFrom(at *location, slot int) error {
	file, got, err := openKept(at.slotName(slot))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	rest := bufio.NewReaderSize(file, 32<<10)
	l, _, err := readList(rest, c.config.MaxSize, nil)
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
	if _, err := c.offer(at, l, nil, known); err != nil {
		return err
	}
	l.slot, at.kept[slot] = slot, l
	c.arrange(known)
	return nil
}
