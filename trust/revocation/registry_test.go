// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// directory is a registry without a network. It answers like the registry of ACPs v2.1: testdata has that one's
// answers.
type directory struct {
	t       *testing.T
	mu      sync.Mutex
	parts   []string // of the snapshot
	agents  int      // its stated number of agents
	seq     int
	changes string        // the next ones
	news    chan struct{} // receives when there are
	fails   int
	asked   map[string]int // by path
}

func (d *directory) RoundTrip(r *http.Request) (*http.Response, error) {
	fails := 0
	d.set(func() { d.asked[r.URL.Path]++; fails = d.fails })
	query := r.URL.Query()
	answer := func(status int, body string, header ...string) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Header: h,
			Body: io.NopCloser(bytes.NewBufferString(body))}, nil
	}
	switch {
	case fails != 0:
		return answer(fails, "")
	case r.URL.Path == "/acps-dsp-v2/info":
		return answer(http.StatusNotFound, "")
	case r.URL.Path == "/acps-dsp-v2/snapshots":
		part, _ := strconv.Atoi(query.Get("chunk"))
		if query.Get("limit") != "1000" || part > 0 && query.Get("id") != "snap_1" {
			d.t.Errorf("a part of the snapshot is asked for by %q", r.URL.RawQuery)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return answer(http.StatusOK, d.parts[part], "X-Snapshot-Id", "snap_1", "X-Snapshot-Seq", strconv.Itoa(d.seq),
			"X-Snapshot-Chunk-Total", strconv.Itoa(len(d.parts)), "X-Snapshot-Object-Count", strconv.Itoa(d.agents))
	case r.URL.Path != "/acps-dsp-v2/changes" || query.Get("wait") != "30":
		d.t.Errorf("a request for %s", r.URL)
	}
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-d.news:
	case <-timer.C:
		return answer(http.StatusNoContent, "", "X-Next-Seq", query.Get("seq"))
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes == "" {
		return answer(http.StatusGone, "{}")
	}
	d.seq++
	return answer(http.StatusOK, d.changes, "X-Next-Seq", strconv.Itoa(d.seq))
}

func (d *directory) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *directory) change(lines string) {
	d.set(func() { d.changes = lines })
	d.news <- struct{}{}
	bubble.Pass(time.Second)
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func entry(aic string, active bool) string {
	return `{"seq":7,"op":"upsert","type":"acs","id":"` + aic + `","payload":{"aic":"` + aic + `","active":` +
		strconv.FormatBool(active) + "}}\n"
}

// The agents of testdata.
const (
	partnerAIC  = "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU" // active
	disabledAIC = "1.2.156.3088.1.0001.00001.2ZRV50.SGSMLR.0KMU"
)

// TestRegistry follows the agents of a registry.
func TestRegistry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		d := &directory{t: t, fails: http.StatusServiceUnavailable, seq: 18, agents: 4, news: make(chan struct{}),
			asked: make(map[string]int),
			parts: []string{testdata(t, "snapshot"), entry(disabledAIC, true) + entry("OFF", false)}}
		list := write(t, "list", p.crl(p.second, 1, []int64{7}))
		c := startWith(t, transports{"localhost": d}, Config{Grace: time.Hour, MaxAge: 3 * time.Hour,
			Sources: append(lists(list), Source{Kind: Registry, Location: "http://localhost"}),
			Agent:   func(c *x509.Certificate) string { return c.Subject.CommonName }})
		chain := func(issuer *authorityKey, serial int64, aic string) []*x509.Certificate {
			return p.leaf(issuer, serial, func(c *x509.Certificate) { c.Subject.CommonName = aic })
		}
		check := func(what string, chain []*x509.Certificate, want Reason) {
			t.Helper()
			if got := reason(t, c.Check(t.Context(), chain, nil)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			if got := reason(t, c.Known(chain)); got != want {
				t.Errorf("%s, in a handshake: %q, want %q", what, got, want)
			}
		}
		partner, agent := chain(p.first, 7, partnerAIC), chain(p.first, 7, disabledAIC)
		bubble.Pass(time.Second)
		check("without a snapshot", partner, NoAnswer)
		d.set(func() { d.fails = 0 })
		bubble.Pass(firstRetry)
		check("active", partner, "")
		check("active", agent, "")
		check("inactive", chain(p.first, 7, "OFF"), Revoked)
		check("unknown", chain(p.first, 7, "STRANGER"), NoAnswer)
		check("active, but revoked by a list", chain(p.second, 7, partnerAIC), Revoked)
		check("in a list that does not revoke it, but inactive", chain(p.second, 8, "OFF"), Revoked)
		check("in a list that does not revoke it, unknown", chain(p.second, 8, "STRANGER"), "")
		if got := c.Health()[1]; got.Entries != 1 || got.Err != nil || got.Good.IsZero() {
			t.Errorf("the health is %+v", got)
		}

		bubble.Pass(10 * time.Minute)
		var n int
		if d.set(func() { n = d.asked["/acps-dsp-v2/changes"] }); n < 20 || n > 22 {
			t.Errorf("%d requests for changes in 10 minutes, want 21", n)
		}
		changed := c.Changed()
		d.change(testdata(t, "disabled"))
		check("disabled", agent, Revoked)
		select {
		case <-changed:
		default:
			t.Error("it is not said to have changed")
		}
		d.change(entry(disabledAIC, true))
		check("enabled", agent, "")
		d.change(testdata(t, "deleted"))
		check("deleted", agent, Revoked)

		// Its changes are too old: the snapshot is got again, and an agent missing in it stays inactive.
		d.set(func() { d.parts, d.agents = []string{entry(partnerAIC, true)}, 1 })
		d.change("")
		check("after a snapshot", partner, "")
		check("missing in the snapshot", agent, Revoked)
		d.set(func() { d.agents = 2 })
		d.change("")
		if err := c.Health()[1].Err; err == nil || err.Error() != "its snapshot has 1 agents of 2" {
			t.Errorf("a snapshot with a part missing: %v", err)
		}
		d.set(func() { d.agents = 1 })
		bubble.Pass(20 * time.Second)
		check("a whole snapshot again", partner, "")

		d.set(func() { d.fails = http.StatusServiceUnavailable })
		bubble.Pass(5 * time.Minute)
		check("away, in its grace", partner, "")
		check("away, inactive", agent, Revoked)
		bubble.Pass(time.Hour)
		check("away for too long", partner, Stale)
	})
}
