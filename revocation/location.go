// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// location is where a list comes from. What is not said to be otherwise is guarded by Checker.mu.
type location struct {
	place int    // among the sources
	name  string // a path or a URL
	url   bool
	cache string // the file in which the list of a URL is kept; empty for none

	current *list // nil for none
	pending *list // the list whose issuer is not known yet; nil for none
	err     error // why there is nothing newer; nil if current is what the location has

	given atomic.Int64 // when a URL has last given current, in ns since 1970; read by anyone

	keeping sync.Mutex // held while cache is written; taken before Checker.mu
	kept    *list      // the one in cache, if that was current; guarded by keeping

	// What the goroutine uses that reads the location.
	modified           time.Time // of a file as it was last read
	size               int64
	etag, lastModified string // of the list of a URL that is in use
}

// span returns the times of a list that is in use. A file is there all the time, but is as old as its list.
func (l *list) span() span {
	if !l.location.url {
		return span{until: l.until, given: l.from, good: l.until}
	}
	given := time.Unix(0, l.location.given.Load())
	s := span{until: l.until, given: given, good: given}
	if given.After(l.until) {
		s.good = l.until // a source that repeats what has ended gives no good answer
	}
	return s
}

// errPending says that a list cannot be verified yet.
var errPending = errors.New("its issuer has not been seen in a certificate's chain yet")

// offer makes a list of one of these issuers the current one of its location, unless the one that is there is better.
// It returns false if it is the one that is there. c.mu is held; keep follows without it.
func (c *Checker) offer(at *location, l *list, issuers []*authority) (changed bool, err error) {
	if ahead := time.Until(l.from); ahead > skew {
		return false, fmt.Errorf("it is for a time that begins in %v", ahead.Round(time.Second))
	}
	err = errPending
	for _, a := range issuers {
		if !l.names(a.cert) {
			continue
		}
		if err = l.verify(a.cert); err == nil {
			l.authority = a.cert
			break
		}
	}
	if err != nil {
		if errors.Is(err, errPending) {
			at.wait(l)
		}
		return false, err
	}
	if old := at.current; old != nil {
		if bytes.Equal(l.signature, old.signature) && bytes.Equal(l.issuer, old.issuer) {
			at.wait(nil)
			at.given.Store(l.got.UnixNano())
			return false, nil
		}
		other := !bytes.Equal(l.issuer, old.issuer) || (l.base == nil) != (old.base == nil) ||
			l.scope.raw != old.scope.raw
		switch {
		case other && time.Now().Before(old.until):
			return false, errors.New("it is of another issuer, kind or scope than the list that is there, and that is valid")
		case !other && l.older(old):
			return false, errors.New("it is older than the list that is there")
		}
	}
	if at.pending != l {
		at.wait(nil)
	}
	at.current.drop()
	l.signed, l.location = nil, at
	at.current, at.pending = l, nil
	at.given.Store(l.got.UnixNano())
	return true, nil
}

// wait makes a list the one whose issuer is not known yet; nil for none.
func (at *location) wait(l *list) {
	if at.pending != l {
		at.pending.drop()
	}
	at.pending = l
}

// report logs what has become of a location, if that is something else than before. c.mu is held.
func (c *Checker) report(at *location, before error) {
	switch l := at.current; {
	case at.err == nil:
		c.log.Info("a revocation list is in use", "source", at.name, "issuer", l.authority.Subject.String(),
			"number", l.number, "entries", l.entries, "next_update", l.until)
	case errors.Is(at.err, errPending) && !errors.Is(before, errPending):
		c.log.Info("a revocation list waits for its issuer", "source", at.name)
	case before == nil || before.Error() != at.err.Error():
		c.log.Warn("a revocation list cannot be used", "source", at.name, "error", at.err, "kept", l != nil)
	}
}

// got takes the list that was read of a location, or why none was. It returns why the location has nothing newer; nil
// if it is in use.
func (c *Checker) got(at *location, l *list, err error) error {
	defer c.keep(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	before, changed, known := at.err, false, *c.known.Load()
	if err == nil {
		changed, err = c.offer(at, l, known)
	}
	if l != nil && l != at.pending && l != at.current {
		l.drop()
	}
	if at.err = err; changed {
		c.arrange(known)
	}
	if changed || before != nil || err != nil {
		c.report(at, before)
	}
	return err
}

// read reads a list, of which the rest is the end. The list of a URL is written to disk meanwhile.
func (c *Checker) read(at *location, r io.Reader) (*list, error) {
	var copied io.Writer
	var spool *os.File
	if at.cache != "" {
		var err error
		if spool, err = newFile(at.cache); err != nil {
			c.cannotKeep(at, err)
		} else {
			copied = spool
			defer func() { _ = spool.Close() }()
		}
	}
	l, rest, err := readList(r, c.config.MaxSize, copied)
	if err == nil {
		if _, more := rest.ReadByte(); !errors.Is(more, io.EOF) {
			err = cmp.Or(more, errSyntax)
		}
	}
	if err != nil {
		if spool != nil {
			_ = os.Remove(spool.Name())
		}
		return nil, err
	}
	l.got = time.Now()
	if spool != nil {
		l.spool = spool.Name()
	}
	return l, nil
}

// drop removes the file that has the list, if it is not kept; nil has none.
func (l *list) drop() {
	if l != nil && l.spool != "" {
		_ = os.Remove(l.spool)
		l.spool = ""
	}
}

// filesEvery is how often files are looked at.
const filesEvery = 10 * time.Second

// followFiles reads files again that have changed.
func (c *Checker) followFiles() {
	ticker := time.NewTicker(filesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, l := range c.locations {
			if !l.url {
				c.readFile(l)
			}
		}
	}
}

// readFile reads a file, unless it is as it was.
func (c *Checker) readFile(l *location) {
	file, err := os.Open(l.name)
	if err != nil {
		l.modified = time.Time{}
		_ = c.got(l, nil, err)
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		_ = c.got(l, nil, err)
		return
	}
	if info.ModTime().Equal(l.modified) && info.Size() == l.size {
		return
	}
	read, err := c.read(l, file)
	l.modified, l.size = info.ModTime(), info.Size()
	_ = c.got(l, read, err)
}
