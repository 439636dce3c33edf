// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// location is where a list comes from. What is not atomic is guarded by Checker.mu.
type location struct {
	name string // a path

	current *list // nil for none
	pending *list // the list whose issuer is not known yet; nil for none
	err     error // why there is nothing newer; nil if current is what the location has

	modified time.Time // of the file as it was last read; used by the goroutine that reads it
	size     int64     // and this
}

// span returns the times of a list that is in use. A file is there all the time, but is as old as its list.
func (l *list) span() span { return span{until: l.until, given: l.from, good: l.until} }

// errPending says that a list cannot be verified yet.
var errPending = errors.New("its issuer has not been seen in a certificate's chain yet")

// offer makes a list the current one of its location, unless the one that is there is better. c.mu is held.
func (c *Checker) offer(at *location, l *list) error {
	if ahead := time.Until(l.from); ahead > skew {
		return fmt.Errorf("it is for a time that begins in %v", ahead.Round(time.Second))
	}
	err := errPending
	for _, a := range *c.known.Load() {
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
			at.pending = l
		}
		return err
	}
	if old := at.current; old != nil {
		other := !bytes.Equal(l.issuer, old.issuer) || (l.base == nil) != (old.base == nil) ||
			l.scope.raw != old.scope.raw
		switch {
		case other && time.Now().Before(old.until):
			return errors.New("it is of another issuer, kind or scope than the list that is there, and that is valid")
		case !other && l.older(old):
			return errors.New("it is older than the list that is there")
		}
	}
	l.der, l.signed, l.location = nil, nil, at
	at.current, at.pending = l, nil
	return nil
}

// report logs what has become of a location, if that is something else than before. c.mu is held.
func (c *Checker) report(at *location, before error) {
	switch l := at.current; {
	case at.err == nil:
		c.log.Info("a revocation list is in use", "source", at.name, "issuer", l.authority.Subject.String(),
			"number", l.number, "entries", l.entries, "next_update", l.until)
	case errors.Is(at.err, errPending):
		c.log.Info("a revocation list waits for its issuer", "source", at.name)
	case before == nil || before.Error() != at.err.Error():
		c.log.Warn("a revocation list cannot be used", "source", at.name, "error", at.err, "kept", l != nil)
	}
}

// got takes what was read of a location.
func (c *Checker) got(at *location, raw []byte, err error) {
	var l *list
	if err == nil {
		l, err = readList(raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := at.err
	if err == nil {
		err = c.offer(at, l)
	}
	if at.err = err; err == nil {
		c.arrange()
	}
	c.report(at, before)
}

// read reads a list up to the limit.
func (c *Checker) read(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, c.config.MaxSize+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(raw)) > c.config.MaxSize:
		return nil, fmt.Errorf("it has more than %d bytes, which is the limit", c.config.MaxSize)
	}
	return raw, nil
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
			c.readFile(l)
		}
	}
}

// readFile reads a file, unless it is as it was.
func (c *Checker) readFile(l *location) {
	file, err := os.Open(l.name)
	if err != nil {
		l.modified = time.Time{}
		c.got(l, nil, err)
		return
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		c.got(l, nil, err)
		return
	}
	if info.ModTime().Equal(l.modified) && info.Size() == l.size {
		return
	}
	raw, err := c.read(file)
	l.modified, l.size = info.ModTime(), info.Size()
	c.got(l, raw, err)
}
