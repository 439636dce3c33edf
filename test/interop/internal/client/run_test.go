// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/client"
)

// parrot is an SDK that answers with what it was asked.
type parrot struct{ options string }

func say(kind string, words ...string) (client.Result, error) {
	if words[0] == "bad" {
		return client.Result{}, errors.New("bad")
	}
	return client.Result{Kind: kind, Value: map[string]any{"words": words}}, nil
}

func twice(kind string, words ...string) iter.Seq2[client.Result, error] {
	return func(yield func(client.Result, error) bool) {
		for range 2 {
			if !yield(say(kind, words...)) {
				return
			}
		}
	}
}

func (p parrot) Card(context.Context) (client.Result, error) {
	return client.Result{Kind: "card", Value: struct{}{}}, nil
}

func (p parrot) Send(_ context.Context, m client.Message) (client.Result, error) {
	return say("task", m.Text, m.Task, m.Context, p.options)
}

func (p parrot) Stream(_ context.Context, m client.Message) iter.Seq2[client.Result, error] {
	return twice("status-update", m.Text)
}

func (p parrot) Get(_ context.Context, id string) (client.Result, error) {
	return client.Result{Kind: "task", Value: map[string]any{"kind": "its own", "id": id}}, nil
}

func (p parrot) Cancel(_ context.Context, id string) (client.Result, error) { return say("task", id) }

func (p parrot) Resubscribe(_ context.Context, id string) iter.Seq2[client.Result, error] {
	return twice("status-update", id)
}

func (p parrot) PushSet(_ context.Context, id, url, token string) (client.Result, error) {
	return say("push-config", id, url, token)
}

func (p parrot) PushGet(_ context.Context, id, config string) (client.Result, error) {
	return say("push-config", id, config)
}

func TestRun(t *testing.T) {
	t.Parallel()
	register := func(flags *flag.FlagSet) client.Connect {
		own := flags.Bool("own", false, "a flag of this client only")
		return func(_ context.Context, o client.Options) (client.Caller, error) {
			return parrot{fmt.Sprintf("%s %s %t", o.URL, o.Endpoint, *own)}, nil
		}
	}
	for _, tc := range []struct {
		line, want, fails string
	}{
		{line: "-url U card", want: `{"kind":"card"}`},
		{line: "-url U send a b -task T -context=C -own", want: `{"kind":"task","words":["a b","T","C","U  true"]}`},
		{line: "--endpoint E send a", want: `{"kind":"task","words":["a","",""," E false"]}`},
		{line: "-url U stream a", want: `{"kind":"status-update","words":["a"]}` + "\n" +
			`{"kind":"status-update","words":["a"]}`},
		{line: "-url U resubscribe T", want: `{"kind":"status-update","words":["T"]}` + "\n" +
			`{"kind":"status-update","words":["T"]}`},
		{line: "-url U get T", want: `{"id":"T","kind":"its own"}`},
		{line: "-url U cancel T", want: `{"kind":"task","words":["T"]}`},
		{line: "-url U push-set T http://h/ K", want: `{"kind":"push-config","words":["T","http://h/","K"]}`},
		{line: "-url U push-get T", want: `{"kind":"push-config","words":["T",""]}`},
		{line: "-url U push-get T C", want: `{"kind":"push-config","words":["T","C"]}`},
		{line: "-url U send bad", fails: "bad"},
		{line: "-url U stream bad", fails: "bad"},
		{line: "-url U list", fails: "this protocol has no list of tasks"},
		{line: "-url U", fails: "say what to do: card, send, stream, get, cancel, resubscribe, list, push-set or push-get"},
		{line: "-url U dance", fails: `there is no command "dance"`},
		{line: "-url U get", fails: "get takes: ID"},
		{line: "-url U cancel A B", fails: "cancel takes: ID"},
		{line: "get T", fails: "name the agent with -url"},
		{line: "-endpoint E card", fails: "name the agent with -url"},
		{line: "-nonsense get T", fails: "flag provided but not defined: -nonsense"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			fails := ""
			if err := client.Run(strings.Fields(tc.line), &out, register); err != nil {
				fails = err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.fails}, []string{strings.TrimSpace(out.String()), fails}); diff != "" {
				t.Errorf("what is written, and how it fails (-want +got):\n%s", diff)
			}
		})
	}
}
