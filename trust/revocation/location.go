// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// location is the origin of one or several lists: a file or a URL. Fields are guarded by Checker.mu unless described
// otherwise.
type location struct {
	place int    // among the sources
	name  string // a path or a URL
	url   bool
	cache string // the beginning of the names of the files with the lists of a URL; empty for none

	current []*list // in use; of each key of an issuer at most one of a kind and scope
	pending []*list // with the issuer not known yet, of the last reading
	err     error   // reason there is nothing newer; nil if current is up to date

	etag, lastModified string // of a URL's last answer, if in use or pending; empty for none

	keeping sync.Mutex    // held while files of cache are written; taken before Checker.mu
	kept    map[int]*list // their lists, by list.slot; guarded by keeping

	// Used by the goroutine that reads the location.
	modified time.Time // of a file as last read
	size     int64
}

// span returns the times of a list in use. A file is there all the time, but is as old as its list.
func (l *list) span() span {
	if !l.location.url {
		return span{until: l.until, given: l.from}
	}
	return span{until: l.until, given: time.Unix(0, l.given.Load())}
}

// errPending is the error of a list that cannot be verified yet.
var errPending = errors.New("its issuer has not been seen in a certificate's chain yet")

// offer has a list of one of these issuers take the place of the one it replaces, unless that one is better, or stand
// beside the others if there is none. It returns false if the list is there already, or a newer one of the same
// reading. c.mu is held; keep follows without it.
func (c *Checker) offer(at *location, l *list, reading []*list, issuers []*authority) (changed bool, err error) {
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
			at.pending = append(at.pending, l)
		}
		return false, err
	}
	i := slices.IndexFunc(at.current, func(o *list) bool { return l.replaces(o) && l.sameKey(o) })
	if i < 0 {
		for l.slot = 0; slices.ContainsFunc(at.current, func(o *list) bool { return o.slot == l.slot }); {
			l.slot++
		}
		at.current = append(at.current, l)
	} else {
		old := at.current[i]
		switch {
		case l.repeats(old):
			old.given.Store(l.got.UnixNano())
			return false, nil
		case l.older(old) && slices.ContainsFunc(reading, old.repeats):
			return false, nil
		case l.older(old):
			return false, errors.New("it is older than the list that is there")
		}
		old.drop()
		l.slot, at.current[i] = old.slot, l
	}
	l.signed, l.location = nil, at
	l.given.Store(l.got.UnixNano())
	return true, nil
}

// lacked returns a valid list in use without a successor in a reading; nil for none. Its loss by a location is a
// mistake, or an attacker's in between: it stays, and new lists of the reading are not added.
func (at *location) lacked(reading []*list) *list {
	for _, old := range at.current {
		if time.Now().Before(old.until) && !slices.ContainsFunc(reading, old.isReplacedBy) {
			return old
		}
	}
	return nil
}

// report logs the lists of a location newly in use, and the reason there is nothing newer, if it has changed. c.mu is
// held.
func (c *Checker) report(at *location, fresh []*list, before error) {
	if len(fresh) == 0 && at.err == nil && before != nil {
		fresh = at.current
	}
	for _, l := range fresh {
		c.log.Info("a revocation list is in use", "source", at.name, "issuer", l.authority.Subject.String(),
			"number", l.number, "entries", l.entries, "next_update", l.until)
	}
	switch {
	case at.err == nil:
	case errors.Is(at.err, errPending) && !errors.Is(before, errPending):
		c.log.Info("a revocation list waits for its issuer", "source", at.name)
	case before == nil || before.Error() != at.err.Error():
		// What to do: see `error`; with `kept`, the list before it counts.
		c.log.Warn("a revocation list cannot be used", "source", at.name, "error", at.err, "kept", len(at.current) > 0)
	}
}

// got takes the lists read of a location, and the error of the others. It returns the reason the location has nothing
// newer; nil if all are in use.
func (c *Checker) got(at *location, reading []*list, err error) error {
	defer c.keep(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := at.err, *c.known.Load()
	if len(reading) > 0 {
		dropAll(at.pending)
		at.pending = nil
	}
	lacked := at.lacked(reading)
	if lacked != nil && err == nil {
		err = fmt.Errorf("it has no list of %s of the kind and scope of the one that is there, and that is valid",
			lacked.authority.Subject)
	}
	var fresh []*list
	used, pending := false, error(nil)
	for _, l := range reading {
		if lacked != nil && !slices.ContainsFunc(at.current, l.replaces) {
			continue
		}
		switch changed, refused := c.offer(at, l, reading, known); {
		case changed:
			fresh, used = append(fresh, l), true
		case refused == nil:
			used = true
		case errors.Is(refused, errPending):
			pending = refused
		default:
			err = cmp.Or(err, refused)
		}
	}
	left := len(at.current)
	if used {
		at.current = slices.DeleteFunc(at.current, func(o *list) bool {
			ended := !time.Now().Before(o.until) && !slices.ContainsFunc(reading, o.isReplacedBy)
			if ended {
				o.drop()
			}
			return ended
		})
	}
	for _, l := range reading {
		if !slices.Contains(at.current, l) && !slices.Contains(at.pending, l) {
			l.drop()
		}
	}
	at.err = cmp.Or(err, pending)
	if len(fresh) > 0 || len(at.current) < left {
		c.arrange(known)
	}
	c.report(at, fresh, before)
	return at.err
}

// read reads the lists of a location. Those of a URL are written to disk meanwhile. An error is about one of them, or
// about the rest.
func (c *Checker) read(at *location, r io.Reader) (all []*list, err error) {
	got := time.Now()
	err = readLists(r, c.config.MaxSize, func(read func(io.Writer) (*list, error)) error {
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
		l, err := read(copied)
		if err != nil {
			if spool != nil {
				_ = os.Remove(spool.Name())
			}
			return err
		}
		l.got = got
		if spool != nil {
			l.spool = spool.Name()
		}
		all = append(all, l)
		return nil
	})
	return all, err
}

// drop removes the file of the list, if it is not kept.
func (l *list) drop() {
	if l.spool != "" {
		_ = os.Remove(l.spool)
		l.spool = ""
	}
}

func dropAll(all []*list) {
	for _, l := range all {
		l.drop()
	}
}

// filesEvery is the interval of looks at files.
const filesEvery = 10 * time.Second

// followFiles reads changed files again.
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
