// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// foundAIC is the AIC of a Partner that is found.
const foundAIC = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

// directory is a registry of ACPs that knows one agent. It answers as that of v2.1 does.
type directory struct {
	*httptest.Server

	mu      sync.Mutex
	url     string // of the agent
	active  bool
	lacks   atomic.Bool // its snapshots lack agents that are not active
	away    atomic.Bool // it answers nothing of use
	seq     int
	changed chan struct{} // closed at the next change
}

func newDirectory(t *testing.T) *directory {
	d := &directory{active: true, seq: 1, changed: make(chan struct{})}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

// change makes the agent active or not, at a URL.
func (d *directory) change(url string, active bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.url, d.active, d.seq = url, active, d.seq+1
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.away.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	acs, _ := json.Marshal(site.Object{"aic": foundAIC, "active": d.active, "name": "Tours", "version": "1",
		"endPoints": []site.Object{{"transport": "AMQP", "url": "amqps://q.example"},
			{"transport": "JSONRPC", "url": d.url}}})
	line := fmt.Sprintf(`{"seq":%d,"op":"upsert","type":"acs","id":%q,"payload":%s}`+"\n", d.seq, foundAIC, acs)
	switch r.URL.Path {
	case "/acps-atr-v2/acs/" + foundAIC:
		if !d.active {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"status":"error","error":{"code":40310,"message":"Agent is not active"}}`)
			return
		}
		_, _ = w.Write(acs)
	case "/acps-dsp-v2/snapshots":
		w.Header().Set("X-Snapshot-Id", "snap")
		w.Header().Set("X-Snapshot-Seq", fmt.Sprint(d.seq))
		w.Header().Set("X-Snapshot-Chunk-Total", "1")
		if d.active || !d.lacks.Load() {
			_, _ = io.WriteString(w, line)
		}
	case "/acps-dsp-v2/changes":
		if r.URL.Query().Get("seq") == fmt.Sprint(d.seq) {
			changed := d.changed
			d.mu.Unlock()
			select {
			case <-changed:
			case <-r.Context().Done():
			}
			d.mu.Lock()
			acs, _ = json.Marshal(site.Object{"active": d.active, "url": d.url})
			line = fmt.Sprintf(`{"seq":%d,"op":"upsert","type":"acs","id":%q,"payload":%s}`+"\n", d.seq, foundAIC, acs)
		}
		w.Header().Set("X-Next-Seq", fmt.Sprint(d.seq))
		_, _ = io.WriteString(w, line)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// shows has a server with a certificate before another one. It returns its URL.
func shows(t *testing.T, root *authority, aic, host, behind string) string {
	t.Helper()
	cert, key := root.issue(&x509.Certificate{Subject: pkix.Name{CommonName: aic}, DNSNames: []string{host},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	to, err := url.Parse(behind)
	site.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0)}
	s := httptest.NewUnstartedServer(proxy)
	s.Config.ErrorLog = proxy.ErrorLog
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// TestFindByAIC has a gateway in front of the Partner of another gateway, which is found by its AIC at a registry: with
// a certificate for another host, when it has moved, while it is disabled, which also ends the turn that runs, and
// where another server answers. The registry that is asked is that of the option registry.
func TestFindByAIC(t *testing.T) {
	t.Parallel()
	var held atomic.Bool // the second agent does not answer
	one, two := site.NewFakeAgent(t, nil),
		site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
			if held.Load() && h.Method == "tasks/send" {
				<-r.Context().Done()
				return
			}
			site.WriteTask(w, h, "completed", "done")
		})
	partner := func(agent *site.FakeAgent) string {
		port := site.FreePort(t)
		site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL,
			OtherSites: fmt.Sprintf(`http://localhost:%d {
	aip_gateway a2a/legacy %s {
		aic %s
		callers aip/2
		identity off
		completion confirm
	}
}`, port, agent.URL, foundAIC)})
		return fmt.Sprintf("http://localhost:%d", port)
	}
	root, d, s := newRoot(t, "root"), newDirectory(t), site.New(t)
	behind := partner(one)
	first := shows(t, root, foundAIC, "elsewhere.example", behind)
	moved := shows(t, root, foundAIC, "elsewhere.example", partner(two))
	other := shows(t, root, strangerAIC, "127.0.0.1", behind)
	d.change(first, true)
	roots := s.InDir("root.pem")
	writeRoots(t, roots, root)
	s.Start(site.Config{
		Store: "store pebble " + s.InDir("store") + "\n\t\tregistry " + d.URL + " {\n\t\t\tuser a b\n\t\t}" +
			"\n\t\tfind {\n\t\t\tregistry\n\t\t}",
		Handle: "aip_gateway {\n\t\tagent aip " + foundAIC + " {\n\t\t\tretry_for 0\n\t\t\ttls {\n\t\t\t\tca " + roots +
			"\n\t\t\t}\n\t\t}\n\t}",
	})
	c := site.LeaderOf(t, s.URL())
	if got := c.Start("one", "hello"); got.Status.State != task.AwaitingCompletion || len(got.Products) != 1 {
		t.Errorf("start answered %+v", got)
	}
	s.WaitFor(t, `the agent was found.*"dialect":"aip/2","endpoint":"`+first+`","why":"registry `+d.URL)
	describe := []string{"aip", "describe", foundAIC, "--registry", d.URL, "--ca", roots}
	if _, stdout, stderr := s.Caddy(describe...); !strings.Contains(stdout, "by registry "+d.URL+"; it speaks aip/2") ||
		!strings.Contains(stdout, "AIC "+foundAIC) {
		t.Errorf("describe: %s%s", stdout, stderr)
	}
	call := []string{"aip", "call", foundAIC, "start", "hello", "--registry", d.URL, "--ca", roots, "--sender", aliceAIC}
	if status, stdout, stderr := s.Caddy(call...); status != 0 || !strings.Contains(stdout, "awaiting-completion") {
		t.Errorf("call ends with %d: %s%s", status, stdout, stderr)
	}

	before := len(two.Requests("tasks/send"))
	d.change(moved, true)
	tries := 0
	site.Eventually(t, "the agent that has moved is found", func() bool {
		tries++
		c.Start(fmt.Sprintf("moved-%d", tries), "hello")
		return len(two.Requests("tasks/send")) > before
	})

	held.Store(true)
	ended := make(chan *task.Task, 1)
	go func() {
		got, _ := c.Try(site.StartCall("running", "hello"))
		ended <- got
	}()
	site.Eventually(t, "the turn runs", func() bool { return len(two.Requests("tasks/send")) > before+1 })
	d.change(moved, false)
	held.Store(false) // for the turns of others
	got := <-ended
	text, _ := json.Marshal(got)
	if got == nil || got.Status.State != task.Failed || !strings.Contains(string(text), "at its registry any more") {
		t.Errorf("the turn that ran has ended with %s", text)
	}
	failed := func(why string) {
		t.Helper()
		site.Eventually(t, why, func() bool {
			tries++
			got := c.Start(fmt.Sprintf("failed-%d", tries), "hello")
			text, _ := json.Marshal(got)
			return got.Status.State == task.Failed && strings.Contains(string(text), why)
		})
	}
	failed("not active at its registry")
	if status, _, stderr := s.Caddy(call...); status != 1 || !strings.Contains(stderr, "not active (403)") {
		t.Errorf("call of a disabled agent ends with %d: %s", status, stderr)
	}

	sent := len(one.Requests("tasks/send"))
	d.change(other, true)
	failed("certificate is not trusted")
	if status, _, stderr := s.Caddy(call...); status != 1 || !strings.Contains(stderr, "the server is "+strangerAIC) {
		t.Errorf("call of another server ends with %d: %s", status, stderr)
	}
	if n := len(one.Requests("tasks/send")); n != sent {
		t.Errorf("a server with another AIC got %d requests", n-sent)
	}
}
