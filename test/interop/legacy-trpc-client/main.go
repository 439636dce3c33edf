// SPDX-License-Identifier: Apache-2.0

// Command legacy-trpc-client is a client that speaks A2A v0.1 (tasks/*) with trpc-a2a-go v0.0.3.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"

	sdk "trpc.group/trpc-go/trpc-a2a-go/client"
	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/server"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/client"
)

func main() {
	client.Main(os.Args[1:], func(*flag.FlagSet) client.Connect { return connect })
}

// caller is the SDK's client. It has no tasks/resubscribe: again is a client whose streams ask for that instead.
type caller struct {
	card         *server.AgentCard // nil when an endpoint was named
	calls, again *sdk.A2AClient
}

func connect(ctx context.Context, o client.Options) (client.Caller, error) {
	h, err := o.HTTP()
	if err != nil {
		return nil, err
	}
	c := new(caller)
	endpoint := o.Endpoint
	if endpoint == "" {
		if c.card, err = fetch(ctx, h, o.URL); err != nil {
			return nil, err
		}
		endpoint = c.card.URL
	}
	if c.calls, err = sdk.NewA2AClient(endpoint, sdk.WithHTTPClient(h)); err != nil {
		return nil, err
	}
	c.again, err = sdk.NewA2AClient(endpoint, sdk.WithHTTPClient(h), sdk.WithHTTPReqHandler(resubscribing{}))
	return c, err
}

// fetch gets a card, which this SDK leaves to its users.
func fetch(ctx context.Context, h *http.Client, base string) (*server.AgentCard, error) {
	where, err := url.JoinPath(base, protocol.AgentCardPath)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	res, err := h.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the card is answered with %s", res.Status)
	}
	card := new(server.AgentCard)
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(card); err != nil {
		return nil, fmt.Errorf("the card: %w", err)
	}
	return card, nil
}

// resubscribing sends a tasks/sendSubscribe as a tasks/resubscribe.
type resubscribing struct{}

func (resubscribing) Handle(_ context.Context, h *http.Client, r *http.Request) (*http.Response, error) {
	var call struct {
		JSONRPC string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Method  string `json:"method"`
		Params  struct {
			ID string `json:"id"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		return nil, err
	}
	call.Method = protocol.MethodTasksResubscribe
	body, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	again.Header = r.Header
	return h.Do(again)
}

func (c *caller) Card(context.Context) (client.Result, error) {
	return client.Result{Kind: "card", Value: c.card}, nil
}

// params makes what is sent. Here it is the client who names a task.
func params(m client.Message) protocol.SendTaskParams {
	p := protocol.SendTaskParams{
		ID:      m.Task,
		Message: protocol.NewMessage(protocol.MessageRoleUser, []protocol.Part{protocol.NewTextPart(m.Text)}),
	}
	if p.ID == "" {
		p.ID = rand.Text()
	}
	if m.Context != "" {
		p.SessionID = &m.Context
	}
	return p
}

func task(t *protocol.Task, err error) (client.Result, error) {
	return client.Result{Kind: "task", Value: t}, err
}

func (c *caller) Send(ctx context.Context, m client.Message) (client.Result, error) {
	return task(c.calls.SendTasks(ctx, params(m)))
}

func (c *caller) Stream(ctx context.Context, m client.Message) iter.Seq2[client.Result, error] {
	return follow(ctx, c.calls, params(m))
}

func (c *caller) Resubscribe(ctx context.Context, id string) iter.Seq2[client.Result, error] {
	return follow(ctx, c.again, params(client.Message{Task: id}))
}

// follow yields the events of a stream up to the final status: agents on this SDK leave the stream open behind it.
func follow(ctx context.Context, calls *sdk.A2AClient, p protocol.SendTaskParams) iter.Seq2[client.Result, error] {
	return func(yield func(client.Result, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the SDK's reader when no test reads any more
		events, err := calls.StreamTask(ctx, p)
		if err != nil {
			yield(client.Result{}, err)
			return
		}
		for e := range events {
			switch e := e.(type) {
			case protocol.TaskStatusUpdateEvent:
				if !yield(client.Result{Kind: "status-update", Value: e}, nil) || e.Final {
					return
				}
			case protocol.TaskArtifactUpdateEvent:
				if !yield(client.Result{Kind: "artifact-update", Value: e}, nil) {
					return
				}
			}
		}
		// The SDK keeps what went wrong to itself.
		yield(client.Result{}, errors.Join(errors.New("the stream ended before a final status"), ctx.Err()))
	}
}

func (c *caller) Get(ctx context.Context, id string) (client.Result, error) {
	return task(c.calls.GetTasks(ctx, protocol.TaskQueryParams{ID: id}))
}

func (c *caller) Cancel(ctx context.Context, id string) (client.Result, error) {
	return task(c.calls.CancelTasks(ctx, protocol.TaskIDParams{ID: id}))
}

func (c *caller) PushSet(ctx context.Context, id, url, token string) (client.Result, error) {
	r, err := c.calls.SetPushNotification(ctx, protocol.TaskPushNotificationConfig{
		ID: id, PushNotificationConfig: protocol.PushNotificationConfig{URL: url, Token: token},
	})
	return client.Result{Kind: "push-config", Value: r}, err
}

// PushGet ignores the id of the configuration: in A2A v0.1 a task has one.
func (c *caller) PushGet(ctx context.Context, id, _ string) (client.Result, error) {
	r, err := c.calls.GetPushNotification(ctx, protocol.TaskIDParams{ID: id})
	return client.Result{Kind: "push-config", Value: r}, err
}
