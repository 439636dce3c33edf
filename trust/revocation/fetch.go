// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	defaultRefresh = 5 * time.Minute
	fetchTimeout   = time.Minute
	// firstRetry is the time after a failed fetch to the next try. The time doubles up to Config.Refresh.
	firstRetry = 10 * time.Second
)

// followURL fetches the list of a URL again and again.
func (c *Checker) followURL(at *location) {
	failures := 0
	for wait := time.Duration(0); c.pause(wait); {
		asked, err := c.fetch(at)
		failures++
		if err == nil || errors.Is(err, errPending) { // it is used as soon as its issuer is known
			failures = 0
		}
		wait = max(asked, c.nextFetch(at, failures))
	}
}

// pause waits. It reports whether the Checker is still open.
func (c *Checker) pause(wait time.Duration) bool {
	select {
	case <-c.ctx.Done():
	case <-time.After(wait):
	}
	return c.ctx.Err() == nil
}

// retryIn returns the time to the next try after so many failures, at least one.
func (c *Checker) retryIn(failures int) time.Duration {
	return min(c.config.Refresh, firstRetry<<min(failures-1, 16))
}

// nextFetch returns when a list is fetched again after a number of failures.
func (c *Checker) nextFetch(at *location, failures int) time.Duration {
	if failures > 0 {
		return c.retryIn(failures)
	}
	wait := c.config.Refresh
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range at.current {
		// The next list may be there as soon as this one ends.
		wait = min(wait, max(time.Until(l.until), firstRetry))
	}
	return wait
}

// fetch fetches the list of a URL once. It returns the time the server asks for before the next request.
func (c *Checker) fetch(at *location) (asked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.name, nil)
	if err != nil {
		return 0, c.got(at, nil, err)
	}
	c.mu.Lock()
	etag, lastModified := at.etag, at.lastModified
	c.mu.Unlock()
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	if lastModified != "" {
		request.Header.Set("If-Modified-Since", lastModified)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		if c.ctx.Err() != nil {
			return 0, err
		}
		return 0, c.got(at, nil, err)
	}
	defer func() { _ = answer.Body.Close() }()
	conditional := etag != "" || lastModified != ""
	switch {
	case answer.StatusCode == http.StatusNotModified && conditional:
		c.confirm(at)
		return 0, nil
	case answer.StatusCode != http.StatusOK:
		return retryAfter(answer), c.got(at, nil, fmt.Errorf("it is answered with %s", answer.Status))
	}
	reading, err := c.read(at, answer.Body)
	if err != nil && c.ctx.Err() != nil {
		dropAll(reading)
		return 0, err
	}
	err = c.got(at, reading, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.etag, at.lastModified = "", ""; at.err == nil || errors.Is(at.err, errPending) {
		// A refused list is fetched whole the next time.
		at.etag, at.lastModified = answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")
	}
	return 0, err
}

// confirm notes the current lists as still the newest of their URL.
func (c *Checker) confirm(at *location) {
	defer c.keep(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	now, before := time.Now(), at.err
	for _, l := range at.current {
		l.given.Store(now.UnixNano())
	}
	at.err = nil
	for _, l := range at.pending {
		l.got, at.err = now, errPending
	}
	c.report(at, nil, before)
}
