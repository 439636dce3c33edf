// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

var pki struct {
	once sync.Once
	dir  string
	made *devpki.PKI
	err  error
}

// certificates returns the certificates that all tests share.
func certificates(t testing.TB) *devpki.PKI {
	t.Helper()
	pki.once.Do(func() {
		if pki.dir, pki.err = os.MkdirTemp("", "aip-e2e-pki-"); pki.err == nil {
			pki.made, pki.err = devpki.Make(devpki.Options{Dir: pki.dir})
		}
	})
	if pki.err != nil {
		t.Fatal(pki.err)
	}
	return pki.made
}

// keyPair reads a certificate and its key.
func keyPair(t testing.TB, f devpki.File) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// issue makes a client certificate of the shared root that devpki would not make.
func issue(t testing.TB, commonName string, names ...string) tls.Certificate {
	t.Helper()
	return issueFor(t, time.Hour, commonName, names...)
}

// issueFor makes one that is valid for a time.
func issueFor(t testing.TB, lifetime time.Duration, commonName string, names ...string) tls.Certificate {
	t.Helper()
	ca := keyPair(t, certificates(t).CA)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// caller is a Leader at work on one Partner.
type caller struct {
	*leader.Client
	t     testing.TB
	mount string

	course *course // of the load that the Leader is a part of: each answer to try is a step; nil for none
}

// callerWith returns a Leader with the given certificates, none for one without.
func callerWith(t testing.TB, mount, sender string, certs ...tls.Certificate) *caller {
	t.Helper()
	client, err := leader.New(mount, &tls.Config{RootCAs: trusted(t), Certificates: certs, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	client.Sender = sender
	t.Cleanup(client.Close)
	c := &caller{Client: client, t: t, mount: mount}
	if os.Getenv("AIP_E2E_LOOP") != "" {
		return c.overHTTP1() // which loops serve
	}
	return c
}

// overHTTP1 has the Leader use HTTP/1.1 rather than HTTP/2.
func (c *caller) overHTTP1() *caller {
	c.HTTP.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	return c
}

// leaderOf returns the Leader that devpki has made, with the certificate of the v02.00 profile.
func leaderOf(t testing.TB, mount string) *caller {
	t.Helper()
	f := certificates(t).Leader
	return callerWith(t, mount, string(f.AIC), keyPair(t, f))
}

// try sends a command. It must end, whichever way, soon after the time for which it asks to wait.
func (c *caller) try(call *task.Call) (*task.Task, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience+max(0, call.Terms.Response))
	defer cancel()
	answer, err := c.Do(ctx, call)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.t.Errorf("%s of %s hangs", call.Message.Command, call.Message.TaskID)
		}
		return nil, err
	}
	c.course.step()
	if answer.Task == nil {
		return nil, errors.New("the answer is a message, not a task")
	}
	return answer.Task, nil
}

// do sends a command that must be answered by a task.
func (c *caller) do(call *task.Call) *task.Task {
	c.t.Helper()
	got, err := c.try(call)
	if err != nil {
		c.t.Fatalf("%s of %s: %v", call.Message.Command, call.Message.TaskID, explain(err))
	}
	return got
}

// refused sends a command that must be answered by an error, and returns that.
func (c *caller) refused(call *task.Call) *leader.Error {
	c.t.Helper()
	_, err := c.try(call)
	var refusal *leader.Error
	if !errors.As(err, &refusal) {
		c.t.Fatalf("%s of %s was not refused: %v", call.Message.Command, call.Message.TaskID, err)
	}
	return refusal
}

func (c *caller) start(id, text string) *task.Task { c.t.Helper(); return c.do(startCall(id, text)) }

// patiently starts a task, and waits for its agent for longer than other starts: an agent that refuses it later has
// failed.
func (c *caller) patiently(id, text string) *task.Task {
	c.t.Helper()
	call := startCall(id, text)
	call.Terms.Response = patience / 2
	return c.do(call)
}

func (c *caller) goOn(id, text string) *task.Task {
	c.t.Helper()
	return c.do(commandCall(task.Continue, id, text))
}
func (c *caller) complete(id string) *task.Task {
	c.t.Helper()
	return c.do(commandCall(task.Complete, id))
}
func (c *caller) cancel(id string) *task.Task {
	c.t.Helper()
	return c.do(commandCall(task.Cancel, id))
}
func (c *caller) get(id string) *task.Task { c.t.Helper(); return c.do(commandCall(task.Get, id)) }

// rests waits until a task is settled, and returns it with its histories.
func (c *caller) rests(id string) *task.Task {
	c.t.Helper()
	got, err := c.settled(id)
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", id, explain(err))
	}
	return got
}

// settled is rests for other goroutines than the test's own.
func (c *caller) settled(id string) (*task.Task, error) {
	deadline := time.Now().Add(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := c.try(commandCall(task.Get, id))
		switch {
		case err != nil || got.Status.State.Settled():
			return got, err
		case time.Now().After(deadline):
			return got, fmt.Errorf("the task is still %s after %v", got.Status.State, patience)
		}
		<-again.C
	}
}

func startCall(id, text string) *task.Call {
	call := commandCall(task.Start, id, text)
	call.Message.SessionID = "session-of-" + id
	return call
}

func commandCall(command task.Command, id string, texts ...string) *task.Call {
	call := &task.Call{Message: task.Message{Command: command, TaskID: id}}
	for _, text := range texts {
		call.Message.DataItems = append(call.Message.DataItems, task.Text(text))
	}
	return call
}

// explain adds to an error of a Partner what its data says.
func explain(err error) error {
	var refusal *leader.Error
	if errors.As(err, &refusal) {
		return errors.New(string(refusal.Raw))
	}
	return err
}

// post sends a body as it is to a path under the mount point.
func (c *caller) post(path string, body []byte, header ...string) (*http.Response, []byte) {
	c.t.Helper()
	return c.request(http.MethodPost, path, body, header...)
}

func (c *caller) request(method, path string, body []byte, header ...string) (*http.Response, []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.mount+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.HTTP.Do(req)
	if method == http.MethodGet && errors.Is(err, syscall.ECONNRESET) { // as in again
		res, err = c.HTTP.Do(req)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, answer
}

// says returns the texts of data items, one a line.
func says(items []task.DataItem) string {
	var b bytes.Buffer
	for i, it := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(it.Text)
	}
	return b.String()
}

// product returns what the products of a task say, in their order.
func product(t *task.Task) []string {
	var out []string
	for i := range t.Products {
		out = append(out, says(t.Products[i].DataItems))
	}
	return out
}

// states returns the states of a history.
func states(history []task.Status) []task.State {
	var out []task.State
	for i := range history {
		out = append(out, history[i].State)
	}
	return out
}

// commands returns the commands of a history.
func commands(history []task.Message) []task.Command {
	var out []task.Command
	for i := range history {
		if history[i].SenderRole == task.Leader { // the others are what the agent said
			out = append(out, history[i].Command)
		}
	}
	return out
}

// checkHistory reports what is not legal about the history of a task that was got.
func checkHistory(t testing.TB, got *task.Task) {
	t.Helper()
	from, last := task.None, time.Time{}
	for _, s := range got.StatusHistory {
		if !task.CanMove(from, s.State) {
			t.Errorf(
				"%s: the history %v goes from %q to %q, which is not in the table",
				got.ID,
				states(got.StatusHistory),
				from,
				s.State,
			)
		}
		if !s.ChangedAt.After(last) {
			t.Errorf("%s: %s was entered at %v, not after %v", got.ID, s.State, s.ChangedAt, last)
		}
		from, last = s.State, s.ChangedAt
	}
	if from != got.Status.State || !last.Equal(got.Status.ChangedAt) {
		t.Errorf(
			"%s is %s since %v, but its history ends with %s since %v",
			got.ID,
			got.Status.State,
			got.Status.ChangedAt,
			from,
			last,
		)
	}
	seen := make(map[string]bool)
	for _, m := range got.MessageHistory {
		if seen[m.ID] {
			t.Errorf("%s: the message %s is in the history twice", got.ID, m.ID)
		}
		seen[m.ID] = true
	}
}

// data returns the data of an error.
func data(t testing.TB, raw json.RawMessage) map[string]any {
	t.Helper()
	var members map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Errorf("the error's data is no object: %s", raw)
		}
	}
	return members
}
