// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildLeaders has Leaders of AIP by rule lead a Partner of the reference's kind, and an agent behind the gateway.
func TestWildLeaders(t *testing.T) {
	t.Parallel()
	runWild(t, wildLeaders)
}

var (
	awaitsCompletion = []string{"awaiting-completion"}
	helloDone        = []string{"done: hello"}
	helloTold        = []string{"hello"}
	completedHello   = wildEnd{Settled: []string{"awaiting-completion", "completed"}, Products: helloDone, Told: helloTold}

	askedColour = wildEnd{Settled: []string{"awaiting-input", "awaiting-completion", "completed"},
		Products: []string{"done: blue"}, Said: []string{"What colour?"}, Told: []string{"ask", "blue"}}
)

var wildLeaders = []wildRow{
	aipRow{
		name: "reads whole results of a stream, and the first one that settles ends it",
		lead: func(l *wildLeader) error {
			r, err := l.stream("start", "ask", nil)
			if err := l.settledBy(r, err); err != nil {
				return err
			}
			if _, err := l.rpc("continue", "blue", nil); err != nil {
				return err
			}
			r, err = l.stream("re-stream", "", site.Object{"commandParams": site.Object{"lastEventSeq": l.last}})
			if err := l.settledBy(r, err); err != nil {
				return err
			}
			return l.settledBy(l.rpc("complete", "", nil))
		},
		want: askedColour,
	}.row(),
	aipRow{
		name: "reads a failure from the whole result of a stream",
		lead: func(l *wildLeader) error { return l.settledBy(l.stream("start", "fail", nil)) },
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the oven is broken"}, Told: []string{"fail"}},
	}.row(),
	aipRow{
		name: "sees the refusal of a stream, as an HTTP status or as an error event",
		lead: func(l *wildLeader) error {
			_, err := l.stream("re-stream", "", site.Object{"commandParams": site.Object{"lastEventSeq": 3}})
			if errors.Is(err, errRefused) {
				l.note("refused")
				err = nil
			}
			return err
		},
		want: wildEnd{Noted: []string{"refused"}},
	}.row(),
	aipRow{
		name: "polls by `get`",
		lead: func(l *wildLeader) error { return l.polled("hello") },
		want: completedHello,
	}.row(),
	aipRow{
		name: "AIP 1, and polls by `get`",
		lead: func(l *wildLeader) error {
			l.v1 = true
			return l.polled("hello")
		},
		want: completedHello,
	}.row(),
	aipRow{
		name:    "sends only `start`, and wants `completed` in its answer",
		set:     "completion auto",
		partner: wildPartnerRule{inStart: true, completes: true},
		lead:    completedByStart,
		want:    wildEnd{Settled: []string{"completed"}, Products: helloDone, Told: helloTold},
	}.row(),
	aipRow{
		name:    "reads products only",
		partner: wildPartnerRule{inStart: true},
		behind:  legacyWorker(true),
		lead:    readsProducts,
		want:    wildEnd{Products: helloDone, Told: helloTold},
	}.row(),
	aipRow{
		name:    "AIP 1, and reads products only",
		partner: wildPartnerRule{inStart: true},
		behind:  legacyWorker(true),
		lead: func(l *wildLeader) error {
			l.v1 = true
			return readsProducts(l)
		},
		want: wildEnd{Products: helloDone, Told: helloTold},
	}.row(),
	aipRow{
		name:    "prints the text of the status and the products",
		partner: wildPartnerRule{inStart: true},
		behind:  legacyWorker(true),
		lead:    func(l *wildLeader) error { return l.settledBy(l.rpc("start", "hello", nil)) },
		want:    wildEnd{Settled: awaitsCompletion, Products: helloDone, Told: helloTold},
	}.row(),
	aipRow{
		name:    "sends only `start`, and reads the products of its answer",
		partner: wildPartnerRule{inStart: true},
		lead:    func(l *wildLeader) error { return l.settledBy(l.rpc("start", "hello", nil)) },
		want:    wildEnd{Settled: awaitsCompletion, Products: helloDone, Told: helloTold},
	}.row(),
	aipRow{
		name: "sends the input in `commandParams.payload`, and no text",
		lead: func(l *wildLeader) error {
			return l.polledWith("", site.Object{"dataItems": []site.Object{{"type": "text", "text": ""}},
				"commandParams": site.Object{"payload": site.Object{"genre": "sea"}}})
		},
		want: wildEnd{Settled: completedHello.Settled, Products: []string{`done: {"genre":"sea"}`},
			Told: []string{`{"genre":"sea"}`}},
	}.row(),
	sessionRow("has one `sessionId` for all tasks", "session"),
	sessionRow("has the `sessionId` \"\"", ""),
	sessionRow("has no `sessionId`", nil),
	documentRow(3),
	documentRow(15),
}

// readsProducts starts a task, and reads the products of the answer alone.
func readsProducts(l *wildLeader) error {
	r, err := l.rpc("start", "hello", nil)
	if err == nil {
		l.products(r)
	}
	return err
}

// settledBy keeps the task of an answer, which must be settled.
func (l *wildLeader) settledBy(r *wildResult, err error) error {
	switch {
	case err != nil:
		return err
	case r == nil:
		return errors.New("there is no result")
	case !settled(r.Status.State):
		return fmt.Errorf("the state is %s", r.Status.State)
	}
	l.saw(r)
	return nil
}

// polled starts a task, polls it, and completes it.
func (l *wildLeader) polled(text string) error { return l.polledWith(text, nil) }

func (l *wildLeader) polledWith(text string, more site.Object) error {
	if err := l.started(text, more); err != nil {
		return err
	}
	return l.settledBy(l.rpc("complete", "", nil))
}

// started starts a task, and polls it until it is settled.
func (l *wildLeader) started(text string, more site.Object) error {
	if _, err := l.rpc("start", text, more); err != nil {
		return err
	}
	return l.settledBy(l.poll())
}

// completedByStart reads the answer to a start, which it wants to be completed.
func completedByStart(l *wildLeader) error {
	r, err := l.rpc("start", "hello", nil)
	if err == nil && r.Status.State == "completed" {
		l.saw(r)
	}
	return err
}

func sessionRow(name string, session any) wildRow {
	return aipRow{
		name: name,
		lead: func(l *wildLeader) error {
			l.session = session
			err := l.polled("one")
			l.anew()
			return errors.Join(err, l.polled("two"))
		},
		want: wildEnd{Settled: append(completedHello.Settled, completedHello.Settled...),
			Products: []string{"done: two"}, Told: []string{"one", "two"}},
	}.row()
}

func documentRow(megabytes int) wildRow {
	text := base64.StdEncoding.EncodeToString(make([]byte, megabytes*1_000_000))
	return aipRow{
		name: fmt.Sprintf("sends a document of %d MB as base64 in one text", megabytes),
		lead: func(l *wildLeader) error { return l.polled(text) },
		want: wildEnd{Settled: completedHello.Settled, Products: []string{"done: " + short(text)},
			Told: []string{short(text)}},
	}.row()
}
