// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// Caller is a Leader at work on one Partner.
type Caller struct {
	*leader.Client
	T     testing.TB // of the Leader's test
	Mount string     // the URL of the Partner

	Course *Course // of the load that the Leader is a part of: each answer to Try is a step; nil for none
}

// CallerWith returns a Leader with the given certificates, none for one without.
func CallerWith(t testing.TB, mount, sender string, certs ...tls.Certificate) *Caller {
	t.Helper()
	client, err := leader.New(mount, &tls.Config{RootCAs: Trusted(t), Certificates: certs, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	client.Sender = sender
	t.Cleanup(client.Close)
	c := &Caller{Client: client, T: t, Mount: mount}
	if os.Getenv("AIP_E2E_LOOP") != "" {
		return c.OverHTTP1() // which loops serve
	}
	return c
}

// OverHTTP1 has the Leader use HTTP/1.1 rather than HTTP/2.
func (c *Caller) OverHTTP1() *Caller {
	c.HTTP.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	return c
}

// LeaderOf returns the Leader that devpki has made, with the certificate of the v02.00 profile.
func LeaderOf(t testing.TB, mount string) *Caller {
	t.Helper()
	f := Certificates(t).Leader
	return CallerWith(t, mount, string(f.AIC), devpkitest.KeyPair(t, f))
}

// Try sends a command. It must end, whichever way, soon after the time for which it asks to wait.
func (c *Caller) Try(call *task.Call) (*task.Task, error) {
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience+max(0, call.Terms.Response))
	defer cancel()
	answer, err := c.Do(ctx, call)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.T.Errorf("%s of %s hangs", call.Message.Command, call.Message.TaskID)
		}
		return nil, err
	}
	c.Course.step()
	if answer.Task == nil {
		return nil, errors.New("the answer is a message, not a task")
	}
	return answer.Task, nil
}

// Send sends a command that must be answered by a task.
func (c *Caller) Send(call *task.Call) *task.Task {
	c.T.Helper()
	got, err := c.Try(call)
	if err != nil {
		c.T.Fatalf("%s of %s: %v", call.Message.Command, call.Message.TaskID, Explain(err))
	}
	return got
}

// Refused sends a command that must be answered by an error, and returns that.
func (c *Caller) Refused(call *task.Call) *leader.Error {
	c.T.Helper()
	_, err := c.Try(call)
	var refusal *leader.Error
	if !errors.As(err, &refusal) {
		c.T.Fatalf("%s of %s was not refused: %v", call.Message.Command, call.Message.TaskID, err)
	}
	return refusal
}

// Insists sends a command, and again where the shard had no owner that can write for as long as a call waits.
func (c *Caller) Insists(call *task.Call) error {
	call.Message.ID = leader.NewID("msg")
	for giveUp := time.Now().Add(Patience); ; {
		_, err := c.Try(call)
		if err == nil || !strings.Contains(Explain(err).Error(), "STORE_UNAVAILABLE") || time.Now().After(giveUp) {
			return err
		}
	}
}

// Start starts a task with a text.
func (c *Caller) Start(id, text string) *task.Task { c.T.Helper(); return c.Send(StartCall(id, text)) }

// Begin starts a task without waiting for its agent.
func (c *Caller) Begin(id, text string) {
	c.T.Helper()
	call := StartCall(id, text)
	call.Terms.Response = time.Millisecond
	c.Send(call)
}

// Patiently starts a task, and waits for its agent for longer than other starts: an agent that refuses it later has
// failed.
func (c *Caller) Patiently(id, text string) *task.Task {
	c.T.Helper()
	call := StartCall(id, text)
	call.Terms.Response = Patience / 2
	return c.Send(call)
}

// GoOn continues a task with a text.
func (c *Caller) GoOn(id, text string) *task.Task {
	c.T.Helper()
	return c.Send(CommandCall(task.Continue, id, text))
}

// Complete completes a task.
func (c *Caller) Complete(id string) *task.Task {
	c.T.Helper()
	return c.Send(CommandCall(task.Complete, id))
}

// Cancel cancels a task.
func (c *Caller) Cancel(id string) *task.Task {
	c.T.Helper()
	return c.Send(CommandCall(task.Cancel, id))
}

// Get returns a task with its histories.
func (c *Caller) Get(id string) *task.Task { c.T.Helper(); return c.Send(CommandCall(task.Get, id)) }

// Rests waits until a task is settled, and returns it with its histories.
func (c *Caller) Rests(id string) *task.Task {
	c.T.Helper()
	got, err := c.Settled(id)
	if err != nil {
		c.T.Fatalf("waiting for %s: %v", id, Explain(err))
	}
	return got
}

// Settled is Rests for other goroutines than the test's own.
func (c *Caller) Settled(id string) (*task.Task, error) {
	deadline := time.Now().Add(Patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := c.Try(CommandCall(task.Get, id))
		switch {
		case err != nil || got.Status.State.Settled():
			return got, err
		case time.Now().After(deadline):
			return got, fmt.Errorf("the task is still %s after %v", got.Status.State, Patience)
		}
		<-again.C
	}
}

// StartCall returns a start in a session of its own.
func StartCall(id, text string) *task.Call {
	call := CommandCall(task.Start, id, text)
	call.Message.SessionID = "session-of-" + id
	return call
}

// CommandCall returns a command about a task, with texts.
func CommandCall(command task.Command, id string, texts ...string) *task.Call {
	call := &task.Call{Message: task.Message{Command: command, TaskID: id}}
	for _, text := range texts {
		call.Message.DataItems = append(call.Message.DataItems, task.Text(text))
	}
	return call
}

// Explain adds to an error of a Partner what its data says.
func Explain(err error) error {
	var refusal *leader.Error
	if errors.As(err, &refusal) {
		return errors.New(string(refusal.Raw))
	}
	return err
}

// Post sends a body as it is to a path under the mount point.
func (c *Caller) Post(path string, body []byte, header ...string) (*http.Response, []byte) {
	c.T.Helper()
	return c.Exchange(http.MethodPost, path, body, header...)
}

// Exchange sends a request to a path under the mount point, and returns the answer with its body.
func (c *Caller) Exchange(method, path string, body []byte, header ...string) (*http.Response, []byte) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.Mount+path, bytes.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.HTTP.Do(req)
	if method == http.MethodGet && errors.Is(err, syscall.ECONNRESET) { // as in Again
		res, err = c.HTTP.Do(req)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return res, answer
}

// Says returns the texts of data items, one a line.
func Says(items []task.DataItem) string {
	var b bytes.Buffer
	for i, it := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(it.Text)
	}
	return b.String()
}

// Product returns what the products of a task say, in their order.
func Product(t *task.Task) []string {
	var out []string
	for i := range t.Products {
		out = append(out, Says(t.Products[i].DataItems))
	}
	return out
}

// States returns the states of a history.
func States(history []task.Status) []task.State {
	var out []task.State
	for i := range history {
		out = append(out, history[i].State)
	}
	return out
}

// Commands returns the commands of a history.
func Commands(history []task.Message) []task.Command {
	var out []task.Command
	for i := range history {
		if history[i].SenderRole == task.Leader { // the others are what the agent said
			out = append(out, history[i].Command)
		}
	}
	return out
}

// CheckHistory reports what is not legal about the history of a task that was got.
func CheckHistory(t testing.TB, got *task.Task) {
	t.Helper()
	from, last := task.None, time.Time{}
	for _, s := range got.StatusHistory {
		if !task.CanMove(from, s.State) {
			t.Errorf(
				"%s: the history %v goes from %q to %q, which is not in the table",
				got.ID,
				States(got.StatusHistory),
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

// Data returns the data of an error.
func Data(t testing.TB, raw json.RawMessage) map[string]any {
	t.Helper()
	var members map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Errorf("the error's data is no object: %s", raw)
		}
	}
	return members
}
