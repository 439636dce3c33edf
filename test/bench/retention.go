// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
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
	var answered atomic.Int64
	target := ending(s, list, &answered)
	before, err := s.cpu()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := load(ctx, target, o.conns, o.lasts)
		ended <- err
	}()
	t := o.table(fmt.Sprintf("tasks of %d KiB in and out at full load, kept %v", keptTexts, keep),
		"tasks a second", "kept", "MB", "kB of one")
	sample := func(name string, since int64, d time.Duration) {
		kept, size := float64(answered.Load()-since)/2, sizeOf(filepath.Join(s.dir, "store"))
		values := []float64{kept / d.Seconds(), kept, size / 1e6}
		if kept > 0 {
			values = append(values, size/1e3/kept)
		}
		t.row(name, values...)
	}
	for at := keep; at <= o.lasts; at += keep {
		since := answered.Load()
		select {
		case <-time.After(keep - time.Second):
			sample(fmt.Sprintf("after %v", at), since, keep)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := <-ended; err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	for range 2 {
		select {
		case <-time.After(keep):
			sample("at rest", answered.Load(), keep)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.table("processor time", "µs a task").row("", float64((after-before).Microseconds())/float64(answered.Load()/2))
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
