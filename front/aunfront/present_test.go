// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// present reports the number of certificates shown of a client, and fails the test if it is not known.
func (w *world) present(aid aun.AID) int {
	w.t.Helper()
	chain, err := w.open.CertificateOf(w.t.Context(), aid)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(chain) > 0 && chain[0].Subject.CommonName != string(aid) {
		w.t.Errorf("the certificate of %s is that of %s", aid, chain[0].Subject)
	}
	return len(chain)
}

// TestCertificateOf: the certificate of a client is shown from its login until it has left, or its token has ended.
func TestCertificateOf(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begins := w.dial("/aun")
		begins.next()
		if _, err := aun.Login(t.Context(), begins.conn, w.pki.Identity("bob.aid.test"), w.pki.Roots(), nil); err != nil {
			t.Fatal(err)
		}
		alice := w.connect("alice.aid.test", "d1")
		if w.present("alice.aid.test") == 0 || w.present("bob.aid.test") > 0 || w.present("carol.aid.test") > 0 {
			t.Error("not the clients that are logged in are shown")
		}
		w.connectAs("carol.aid.test", "s", `{"kind":"short"}`)
		if w.present("carol.aid.test") == 0 {
			t.Error("a client with a short connection is not shown")
		}
		alice.cut()
		synctest.Wait()
		bubble.Pass(2 * time.Hour) // the token of carol has ended
		if w.present("alice.aid.test") > 0 || w.present("carol.aid.test") > 0 {
			t.Error("clients are shown that have left")
		}
		w.stop()
	})
}

// TestCertificateElsewhere: a client connected to another process is found, and only a few are asked for at once.
func TestCertificateElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all := twoWorlds(t, "alice.aid.test")
		all[0].connect("alice.aid.test", "d1")
		for i, w := range all {
			if w.present("alice.aid.test") == 0 || w.present("bob.aid.test") > 0 {
				t.Errorf("process %d does not show who is logged in", i)
			}
		}
		n := all[1].open.nodes.Load()
		for range maxLooks {
			n.looks <- struct{}{}
		}
		if _, err := all[1].open.CertificateOf(t.Context(), "alice.aid.test"); err == nil {
			t.Error("one more is asked for than may be")
		}
		if all[0].present("alice.aid.test") == 0 {
			t.Error("who is connected here is not shown while others are asked for")
		}
	})
}
