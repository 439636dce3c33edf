// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// keptTexts is the size of the texts of retention, in KiB.
const keptTexts = 16

// behind is how many calls after its start a task is completed.
const behind = 1000

// retention measures the directory of the store while tasks are started and completed as fast as they are answered, and
// dropped after a sixth of the time: when many were dropped, and at rest.
func retention(ctx context.Context, o settings) error {
	keep := o.lasts / 6
	s, err := newSite(ctx, o.caddy, siteConfig{store: fmt.Sprintf("%s {\n\t\t\tretention %v\n\t\t}", storeState, keep)})
	if err != nil {
		return err
	}
	defer s.close()
	list, err := sampleTexts()
	if err != nil {
		return err
	}
	var made atomic.Int64
	target := ending(s, list, &made)
	computed, err := s.cpu()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := load(ctx, target, o.conns, o.lasts)
		ended <- err
	})
	t := o.table(fmt.Sprintf("tasks of %d KiB in and out at full load, kept %v", keptTexts, keep),
		"tasks a second", "kept", "MB", "kB of one")
	began, last, seen := time.Now(), time.Now(), int64(0)
	sample := func(name string) {
		now, size := made.Load(), sizeOf(filepath.Join(s.dir, "store"))
		kept := float64(now-seen) / 2
		values := []float64{kept / time.Since(last).Seconds(), kept, size / 1e6}
		if kept > 0 {
			values = append(values, size/1e3/kept)
		}
		t.row(name, values...)
		last, seen = time.Now(), now
	}
	for at := keep; at <= o.lasts; at += keep {
		select {
		case <-time.After(time.Until(began.Add(at - time.Second))): // before the load ends
			sample(fmt.Sprintf("after %v", at))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := <-ended; err != nil {
		return err
	}
	seen = made.Load()
	after, err := s.cpu()
	if err != nil {
		return err
	}
	for range 2 {
		select {
		case <-time.After(keep):
			sample("at rest")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.table("processor time", "µs a task").row("", float64((after-computed).Microseconds())/float64(seen/2))
	return nil
}

// ending starts a task by each odd request, and completes an earlier one by each even request. It counts the requests.
func ending(s *site, list [][]byte, made *atomic.Int64) target {
	t := saying(aipStart(s, plain), list, keptTexts<<10)
	start, first := t.body, numbers.Load()+behind
	t.also = []byte(`"state":"`)
	of := func(n int64) int64 { // the task of a request
		if n%2 == 0 && n > first+behind {
			return n - behind - 1
		}
		return n
	}
	t.want = func(dst []byte, n int64) []byte { return echoed(dst, of(n)) }
	t.body = func(dst []byte, n int64) []byte {
		made.Add(1)
		dst = start(dst, of(n))
		if of(n) != n {
			from := bytes.Index(dst, []byte(`"dataItems"`))
			to := bytes.LastIndex(dst, []byte(`"taskId"`))
			dst = append(dst[:from], dst[to:]...)
			dst = bytes.Replace(dst, []byte(`"command":"start"`), []byte(`"command":"complete"`), 1)
			dst = bytes.Replace(dst, []byte(`"id":"msg-`), []byte(`"id":"done-`), 1)
		}
		return dst
	}
	return t
}
