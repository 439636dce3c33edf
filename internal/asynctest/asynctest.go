// SPDX-License-Identifier: Apache-2.0

// Package asynctest has the common helpers of tests with goroutines outside a synctest bubble, because these wait for
// sockets or for the system.
package asynctest

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Eventually waits until done returns true, and calls it every millisecond. The test fails after two minutes only, so a
// slow machine does not make it fail; what names the awaited fact.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	Within(t, 2*time.Minute, what, done)
}

// Within is Eventually with a limit of its own.
func Within(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("within %v it did not become true that %s", limit, what)
		}
	}
}

// Buffer is a buffer, for example for a log, to be read while others write to it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns the content so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
