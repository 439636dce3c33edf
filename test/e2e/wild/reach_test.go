// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildReach has Leaders of AIP by rule reach a Partner in their ways: by its ACS, by an address, by clients of HTTP
// that they share.
func TestWildReach(t *testing.T) {
	t.Parallel()
	runWild(t, wildReach)
}

var wildReach = []wildRow{
	aipRow{
		name: "takes the endpoint from the ACS, and calls its siblings",
		lead: func(l *wildLeader) error {
			var acs struct {
				EndPoints    []struct{ URL, Transport string }
				Capabilities struct{ Streaming, Notification bool }
			}
			if err := l.get("/acs", &acs); err != nil {
				return err
			}
			for _, endpoint := range acs.EndPoints {
				if endpoint.Transport == "JSONRPC" {
					l.base = strings.TrimSuffix(endpoint.URL, "/"+path.Base(endpoint.URL))
					l.note("%s, streaming %t, notification %t", path.Base(endpoint.URL), acs.Capabilities.Streaming,
						acs.Capabilities.Notification)
				}
			}
			_, err := l.post("notification/set", "notification/set",
				site.Object{"url": "http://127.0.0.1:1/", "token": wildToken, "taskId": l.task})
			if err != nil {
				return err
			}
			r, err := l.stream("start", "hello", nil)
			if err := l.settledBy(r, err); err != nil {
				return err
			}
			return l.settledBy(l.rpc("complete", "", nil))
		},
		want: wildEnd{Settled: completedHello.Settled, Products: helloDone, Told: helloTold,
			Noted: []string{"rpc, streaming true, notification true"}},
	}.row(),
	aipRow{
		name: "asks `GET /health` before each call, and `GET /acs` for skills",
		lead: func(l *wildLeader) error {
			var health, acs map[string]any
			if err := errors.Join(l.get("/health", &health), l.get("/acs", &acs)); err != nil {
				return err
			}
			skills, _ := acs["skills"].([]any)
			l.note("%d skills, AIC %t", len(skills), acs["aic"] != nil)
			return l.polled("hello")
		},
		want: wildEnd{Settled: completedHello.Settled, Products: helloDone, Told: helloTold,
			Noted: []string{"1 skills, AIC true"}},
	}.row(),
	aipRow{
		name: "wants the AIC of the server's certificate as the `senderId` of answers",
		lead: func(l *wildLeader) error {
			r, err := l.rpc("start", "hello", nil)
			if err == nil && (r.SenderID == "" || r.SenderID != l.peer) {
				err = fmt.Errorf("the answer is of %q, and the certificate of %q", r.SenderID, l.peer)
			}
			if err != nil {
				return err
			}
			return l.settledBy(l.poll())
		},
		want: wildEnd{Settled: awaitsCompletion, Products: helloDone, Told: helloTold},
	}.row(),
	byAddress(),
	sessionsRow("several sessions with the same HTTP clients, which the end of one closes",
		"timeouts {\nresponse 1s\n}", legacyWorker(false)),
}

// byAddress calls a Partner by its IP address: the handshake then names no server, and Caddy wants a name where it asks
// for certificates.
func byAddress() wildRow {
	row := aipRow{
		name: "calls an IP address over mTLS",
		set:  "default_sni 127.0.0.1\n\tservers {\n\t\tstrict_sni_host insecure_off\n\t}",
		lead: func(l *wildLeader) error {
			l.base = strings.Replace(l.base, "localhost", "127.0.0.1", 1)
			return l.polled("hello")
		},
		want: completedHello,
	}.row()
	row.ways[1].through = false
	row.ways[1].serve = func(t *testing.T) *wildServed {
		served, pki, port := legacyWorker(false)(t), site.Certificates(t), site.FreePort(t)
		site.Serve(t, site.Config{Handle: "respond 404", Options: row.set, OtherSites: fmt.Sprintf(`https://127.0.0.1:%d {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway %s
}`, port, pki.Server.Cert, pki.Server.Key, pki.CA.Cert, served.as)})
		served.at = fmt.Sprintf("https://localhost:%d", port)
		return served
	}
	return row
}

// sessionsRow has two sessions of one process. The second one ends while the agent works for the first one.
func sessionsRow(name, set string, behind func(*testing.T) *wildServed) wildRow {
	return aipRow{
		name: name, set: set, behind: behind,
		lead: func(l *wildLeader) error {
			shared, closeAll := context.WithCancel(l.ctx)
			defer closeAll()
			first, second := *l, *l
			first.ctx, second.ctx = shared, shared
			first.anew()
			if err := second.polled("hello"); err != nil {
				return err
			}
			answered := make(chan error, 1)
			go func() {
				_, err := first.rpc("start", "hold", nil)
				answered <- err
			}()
			var err error
			select {
			case err = <-answered:
			case <-time.After(10 * time.Second): // the second session has no reason to last longer
				closeAll()
				err = fmt.Errorf("the start was cut: %w", <-answered)
			}
			if err != nil {
				return err
			}
			l.anew()
			if _, err := l.rpc("start", "release", nil); err != nil {
				return err
			}
			l.task = first.task
			return l.settledBy(l.poll())
		},
		want: wildEnd{Settled: awaitsCompletion, Products: []string{"done: hold"},
			Told: []string{"hello", "hold", "release"}},
	}.row()
}
