// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
	"github.com/aip-gateway/aip-gateway/task"
)

// begin sets a webhook for a task and starts it. It returns the history of the task.
func begin(c *caller, id, url string) []task.Status {
	c.t.Helper()
	c.setHook(hook{URL: url, Token: "t", TaskID: id})
	c.start(id, "hello")
	return c.get(id).StatusHistory
}

// lead is begin, and then leads the task to its end.
func lead(c *caller, id, url string) []task.Status {
	c.t.Helper()
	begin(c, id, url)
	c.goOn(id, "more")
	c.complete(id)
	return c.get(id).StatusHistory
}

// TestWebhook proves that notifications have the order, the content and the header fields that they should.
//
// Promise: forged notifications to a receiver
func TestWebhook(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		writeTask(w, h, "completed", fmt.Sprintf("the work of %d bytes", len(h.body)))
	})
	up := newSink(t)
	s := newSite(t)
	key := func(args ...string) (secret, public string) {
		_, out, _ := s.caddy(append([]string{"aip", "webhook-key"}, args...)...)
		m := regexp.MustCompile(`^signing_key  (\S+)\n(?:public       (\S+)\n)?$`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("webhook-key says %q", out)
		}
		return m[1], m[2]
	}
	private, public := key()
	shared, _ := key("--hmac")
	s.env = []string{"AIP_TEST_KEY=" + private}
	s.start(
		config{
			notify: here + "signing_key {env.AIP_TEST_KEY}\nsigning_key " + shared,
			handle: "aip_gateway a2a/legacy " + agent.url,
		},
	)
	leader := leaderOf(t, s.url())

	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	tokens := map[string]string{"/one": "a token of one", "/two": "two"}
	var named hook // by the start; the other one is notified as well
	for path, token := range tokens {
		named = leader.setHook(hook{URL: up.origin() + path, Token: token, TaskID: "a"})
	}
	// The answer to a command is the same as the notification of the state in the answer.
	answers := []*task.Task{leader.notifyStart("a", named.ID, "traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")}
	answers = append(answers, leader.goOn("a", "more"), leader.complete("a"))
	history := leader.get("a").StatusHistory
	for path, token := range tokens {
		up.waitForChanges(path, history)
		up.inOrder(path)
		begun := 0 // turns
		for _, n := range up.arrived(path) {
			if n.task.Status.State == task.Working {
				begun++
			}
			want := map[string]string{"Content-Type": "application/json", "X-Acps-Aip-Notification-Token": token}
			for name, value := range want {
				if got := n.header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			signature, stamp := n.header.Get("webhook-signature"), n.header.Get("webhook-timestamp")
			for _, key := range []string{public, shared} {
				if err := signtest.Verify(signature, n.id, stamp, n.body, n.at, key); err != nil {
					t.Errorf("the signature %q is not one of %s: %v", signature, key, err)
				}
				if signtest.Verify(signature, n.id, stamp, append(n.body[:len(n.body):len(n.body)], ' '), n.at, key) == nil {
					t.Error("the signature is one of another body, too")
				}
			}
			if len(strings.Fields(signature)) != 2 {
				t.Errorf("two keys make the signatures %q", signature)
			}
			// The first turn is caused by the start, the second by a request without a trace.
			parent := regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`).
				FindStringSubmatch(n.header.Get("traceparent"))
			inFirst := begun < 2 && n.task.Status.State != task.Completed
			if parent == nil || (parent[1] == traceID) != inFirst {
				t.Errorf("the traceparent of %s is %q", n.task.Status.State, n.header.Get("traceparent"))
			}
			checkBody(t, &n, answers)
		}
	}

	// Of two webhooks, each notification has an id of its own.
	seen := make(map[string]bool)
	for _, n := range up.arrived("") {
		if seen[n.id] || n.id == "" {
			t.Errorf("the webhook-id %q came twice", n.id)
		}
		seen[n.id] = true
	}
}

// checkBody demands that the body of a notification is the Task as it was then, as far as answers show it, with its
// products and without its histories.
func checkBody(t *testing.T, n *notice, answers []*task.Task) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(n.body, &members); err != nil {
		t.Fatal(err)
	}
	if members["messageHistory"] != nil || members["statusHistory"] != nil || string(members["type"]) != `"task"` {
		t.Errorf("the body is %s", n.body)
	}
	var before *task.Task
	for _, answer := range answers {
		if answer.Status.ChangedAt.Equal(n.task.Status.ChangedAt) {
			if diff := cmp.Diff(answer, &n.task); diff != "" {
				t.Errorf("the body in state %s (-answer +body):\n%s", n.task.Status.State, diff)
			}
			return
		}
		if answer.Status.ChangedAt.Before(n.task.Status.ChangedAt) {
			before = answer
		}
	}
	var products []string
	if before != nil && n.task.Status.State != task.Working { // a continue withdraws what was offered
		products = product(before)
	}
	if diff := cmp.Diff(products, product(&n.task)); diff != "" || n.task.SessionID != "session-of-a" {
		t.Errorf("the body in state %s is %s; its products (-want +got):\n%s", n.task.Status.State, n.body, diff)
	}
}

// TestWebhookTLS delivers by https, to a receiver that the gateway trusts, and not to the same one where it does not.
//
// Promise: a third party reads the network
func TestWebhookTLS(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	p := certificates(t)
	for name, env := range map[string][]string{"trusted": {"SSL_CERT_FILE=" + p.CA.Cert}, "not trusted": nil} {
		up := newTLSSink(t, &tls.Config{Certificates: []tls.Certificate{keyPair(t, p.Server)}, MinVersion: tls.VersionTLS12})
		s := newSite(t)
		s.env = env
		s.start(config{store: "store memory", notify: here + "attempts 1", handle: "aip_gateway a2a/legacy " + agent.url})
		history := begin(leaderOf(t, s.url()), "a", "https://localhost"+up.address[len("127.0.0.1"):]+"/tls")
		s.idle()
		if env != nil {
			up.waitForChanges("/tls", history)
			continue
		}
		up.waitForChanges("/tls", nil)
		for _, d := range s.deliveries("status=dead") {
			if !strings.Contains(d.LastError, "certificate") {
				t.Errorf("%s: the last error is %q", name, d.LastError)
			}
		}
	}
}

// TestWebhookFaults has receivers fail in all the ways that there are, in random orders.
//
// Promise: receiver of webhooks, broker of a group
func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	elsewhere := newSink(t)
	s := serve(t, config{notify: here + "timeout 1s\nattempts 100", handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	deck := func() []response {
		return []response{
			hangs(), resets(), slowly(), verbosely(200), verbosely(500), endlessly(), saysOnly(""), saysOnly("HTTP/1.1 20"),
			saysOnly(
				"hello\r\n\r\n",
			), saysOnly("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), refusal(500), refusal(404), refusal(429),
			refusal(
				301,
				"Location: "+elsewhere.origin()+"/moved\r\n",
			), refusal(307, "Location: "+elsewhere.origin()+"/moved\r\n"),
			refusal(308, "Location: /elsewhere\r\n"), refusal(503, "Retry-After: 86400\r\n"),
		}
	}
	seed := anySeed(t)
	type one struct {
		*sink
		history []task.Status
	}
	var all []one
	for i := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		cards := deck()
		random.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		to := newSink(t)
		to.answers(func(*notice) response {
			if len(cards) == 0 {
				return taken()
			}
			next := cards[0]
			cards = cards[1:]
			return next
		})
		history := lead(leader, fmt.Sprint("task ", i), to.origin()+"/faults")
		all = append(all, one{to, history})
	}
	for _, to := range all {
		to.nudged("/faults", to.history, func() { s.enable(to.origin()) })
		to.inOrder("/faults")
		if n := len(to.arrived("/elsewhere")); n != 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	}
	if n := len(elsewhere.arrived("")); n != 0 {
		t.Errorf("a redirect was followed to another host %d times", n)
	}
	s.idle()
	if left := s.deliveries(""); len(left) != 0 {
		t.Errorf("there is still to be delivered: %+v", left)
	}
}

// TestWebhookGone proves that a webhook whose receiver wants nothing more is left alone until it is set again.
func TestWebhookGone(t *testing.T) {
	t.Parallel()
	agent, to := newFakeAgent(t, nil), newSink(t)
	s := serve(t, config{notify: here, handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	to.answers(func(n *notice) response {
		if n.path == "/gone" {
			return refusal(410)
		}
		return taken()
	})
	gone := leader.setHook(hook{URL: to.origin() + "/gone", Token: "t", TaskID: "a"})
	leader.setHook(hook{URL: to.origin() + "/other", Token: "t", TaskID: "a"})
	leader.start("a", "hello")
	eventually(t, "the webhook is disabled", func() bool { return len(s.deliveries("status=disabled")) == 3 })
	leader.goOn("a", "more")
	to.waitForChanges("/other", leader.get("a").StatusHistory)
	s.idle()
	if n := len(to.arrived("/gone")); n != 1 {
		t.Errorf("who answered 410 was asked %d times", n)
	}
	if diff := cmp.Diff([]hook{gone}, leader.hooks("a", gone.ID)); diff != "" {
		t.Errorf("the disabled webhook (-want +got):\n%s", diff)
	}
	to.answers(always(taken()))
	leader.setHook(gone)
	leader.complete("a")
	to.waitForChanges("/gone", leader.get("a").StatusHistory)
	to.inOrder("/gone")
}

// TestWebhookRetryAfter proves that a receiver is left alone for as long as it asks.
func TestWebhookRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second // longer than what comes after a first failure anyway
	agent, to := newFakeAgent(t, nil), newSink(t)
	s := serve(t, config{store: "store memory", notify: here, handle: "aip_gateway a2a/legacy " + agent.url})
	var asked time.Time
	to.answers(func(n *notice) response {
		switch {
		case asked.IsZero():
			asked = time.Now()
			return refusal(429, "Retry-After: 2\r\n")
		case time.Since(asked) < wait:
			t.Errorf("%s was sent %v after the receiver had asked for %v", n.task.Status.State, time.Since(asked), wait)
		}
		return taken()
	})
	leader := leaderOf(t, s.url())
	history := lead(leader, "a", to.origin()+"/busy")
	also := lead(leader, "b", to.origin()+"/busy/too") // all of the endpoint is left alone
	to.waitForChanges("/busy", history)
	to.waitForChanges("/busy/too", also)
}

// TestWebhookReload changes the configuration while there is much to be delivered.
func TestWebhookReload(t *testing.T) {
	t.Parallel()
	agent, to := newFakeAgent(t, nil), newSink(t)
	var keys [2]sign.Key
	conf := func(i int, timeout string) config {
		secret := sign.Generate()
		var err error
		if keys[i], err = sign.Parse(secret); err != nil {
			t.Fatal(err)
		}
		return config{
			notify: here + "timeout " + timeout + "\nsigning_key " + secret,
			handle: "aip_gateway a2a/legacy " + agent.url,
		}
	}
	signed := func(n *notice, i int) bool {
		return signtest.Verify(
			n.header.Get("webhook-signature"),
			n.id,
			n.header.Get("webhook-timestamp"),
			n.body,
			n.at,
			keys[i].Public(),
		) == nil
	}
	s := newSite(t)
	s.start(conf(0, "1s"))
	to.answers(always(hangs()))
	history := lead(leaderOf(t, s.url()), "a", to.origin()+"/late")
	eventually(t, "the first attempt has failed", func() bool {
		d := s.deliveries("status=failing")
		return len(d) > 0 && strings.Contains(d[0].LastError, "within 1s")
	})
	after := conf(1, "1m")
	slow := false
	to.answers(func(n *notice) response {
		switch {
		case signed(n, 0):
			return hangs()
		case slow:
			return taken()
		}
		slow = true
		return response{true, func(conn net.Conn) bool {
			// For the old timeout, that is too long: the gateway would hang up.
			_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				return false
			}
			_ = conn.SetReadDeadline(time.Time{})
			return taken().write(conn)
		}}
	})
	if why := s.reload(after); why != "" {
		t.Fatal(why)
	}
	to.nudged("/late", history, func() { s.enable(to.origin()) })
	s.idle()
	renewed := 0
	for _, n := range to.arrived("/late") {
		switch old, young := signed(&n, 0), signed(&n, 1); {
		case old == young || old && renewed > 0:
			t.Errorf(
				"%s is signed by the old key: %t, by the new one: %t, after %d by that",
				n.task.Status.State,
				old,
				young,
				renewed,
			)
		case young:
			renewed++
		}
	}
	if renewed != len(history) {
		t.Errorf("%d changes took %d attempts after the reload", len(history), renewed)
	}
}
