// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"iter"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/client"
)

func register(flags *flag.FlagSet) client.Connect {
	async := flags.Bool("async", false, "send: do not wait until the task rests")
	return func(ctx context.Context, o client.Options) (client.Caller, error) {
		h, err := o.HTTP()
		if err != nil {
			return nil, err
		}
		c := &caller{async: *async}
		transports := []a2aclient.FactoryOption{a2aclient.WithDefaultsDisabled(), a2aclient.WithJSONRPCTransport(h)}
		if o.Endpoint != "" {
			c.sdk, err = a2aclient.NewFromEndpoints(
				ctx,
				[]a2a.AgentInterface{{URL: o.Endpoint, Transport: a2a.TransportProtocolJSONRPC}},
				transports...)
			return c, err
		}
		if c.card, err = agentcard.NewResolver(h).Resolve(ctx, o.URL); err != nil {
			return nil, err
		}
		c.sdk, err = a2aclient.NewFromCard(ctx, c.card, transports...)
		return c, err
	}
}

// caller is the SDK's client.
type caller struct {
	sdk   *a2aclient.Client
	card  *a2a.AgentCard // nil when an endpoint was named
	async bool
}

func (c *caller) Card(context.Context) (client.Result, error) {
	return client.Result{Kind: "card", Value: c.card}, nil
}

func (c *caller) params(m client.Message) *a2a.MessageSendParams {
	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: m.Text})
	message.TaskID, message.ContextID = a2a.TaskID(m.Task), m.Context
	p := &a2a.MessageSendParams{Message: message}
	if c.async {
		p.Config = &a2a.MessageSendConfig{Blocking: new(bool)}
	}
	return p
}

// event says of which kind an event is.
func event(e a2a.Event, err error) (client.Result, error) {
	if err != nil {
		return client.Result{}, err
	}
	switch e.(type) {
	case *a2a.Task:
		return client.Result{Kind: "task", Value: e}, nil
	case *a2a.Message:
		return client.Result{Kind: "message", Value: e}, nil
	case *a2a.TaskStatusUpdateEvent:
		return client.Result{Kind: "status-update", Value: e}, nil
	case *a2a.TaskArtifactUpdateEvent:
		return client.Result{Kind: "artifact-update", Value: e}, nil
	}
	return client.Result{}, fmt.Errorf("the SDK answered with a %T", e)
}

func events(all iter.Seq2[a2a.Event, error]) iter.Seq2[client.Result, error] {
	return func(yield func(client.Result, error) bool) {
		for e, err := range all {
			if !yield(event(e, err)) {
				return
			}
		}
	}
}

func (c *caller) Send(ctx context.Context, m client.Message) (client.Result, error) {
	r, err := c.sdk.SendMessage(ctx, c.params(m))
	return event(r, err)
}

func (c *caller) Stream(ctx context.Context, m client.Message) iter.Seq2[client.Result, error] {
	return events(c.sdk.SendStreamingMessage(ctx, c.params(m)))
}

func (c *caller) Get(ctx context.Context, id string) (client.Result, error) {
	t, err := c.sdk.GetTask(ctx, &a2a.TaskQueryParams{ID: a2a.TaskID(id)})
	return event(t, err)
}

func (c *caller) Cancel(ctx context.Context, id string) (client.Result, error) {
	t, err := c.sdk.CancelTask(ctx, &a2a.TaskIDParams{ID: a2a.TaskID(id)})
	return event(t, err)
}

func (c *caller) Resubscribe(ctx context.Context, id string) iter.Seq2[client.Result, error] {
	return events(c.sdk.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: a2a.TaskID(id)}))
}

func (c *caller) PushSet(ctx context.Context, id, url, token string) (client.Result, error) {
	r, err := c.sdk.SetTaskPushConfig(
		ctx,
		&a2a.TaskPushConfig{TaskID: a2a.TaskID(id), Config: a2a.PushConfig{URL: url, Token: token}},
	)
	return client.Result{Kind: "push-config", Value: r}, err
}

func (c *caller) PushGet(ctx context.Context, id, config string) (client.Result, error) {
	r, err := c.sdk.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigParams{TaskID: a2a.TaskID(id), ConfigID: config})
	return client.Result{Kind: "push-config", Value: r}, err
}
