// SPDX-License-Identifier: Apache-2.0

//go:build unix

package revocation

import (
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestSlowDisk has a disk fail to finish a write of a list: handshakes do not wait for it, neither the one introducing
// the issuer of the list, nor others.
func TestSlowDisk(t *testing.T) {
	p := newPKI(t)
	s := &site{}
	s.set(p.crl(p.first, 5, []int64{7}), "")
	c, err := New(Config{Sources: lists(listURL), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.client.Transport = s
	at := c.locations[0]
	if _, err := c.fetch(at); !errors.Is(err, errPending) {
		t.Fatalf("the list is in use before its issuer is known: %v", err)
	}
	// A pipe takes nothing before somebody reads it.
	spool := at.pending[0].spool
	if err := errors.Join(os.Remove(spool), syscall.Mkfifo(spool, 0o600)); err != nil {
		t.Fatal(err)
	}
	first, second := p.leaf(p.first, 7), p.leaf(p.second, 7)
	decided := make(chan Reason, 2)
	go func() {
		decided <- reason(t, c.Known(first))
		decided <- reason(t, c.Known(second))
	}()
	for _, want := range []Reason{Revoked, NoAnswer} {
		select {
		case got := <-decided:
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		case <-time.After(2 * time.Minute):
			t.Error("a handshake waits for the disk")
		}
	}
	disk, err := os.Open(spool)
	if err != nil {
		t.Fatal(err)
	}
	_ = disk.Close()
}
