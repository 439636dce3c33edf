// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/client"
)

func register(flags *flag.FlagSet) client.Connect {
	async := flags.Bool("async", false, "send: do not wait until the task rests")
	rest := flags.Bool("rest", false, "speak REST and not JSON-RPC")
	compat := flags.Bool("compat", false, "speak A2A v0.3")
	overGRPC := flags.Bool("grpc", false, "speak gRPC and not JSON-RPC; an -endpoint is a host and a port then")
	return func(ctx context.Context, o client.Options) (client.Caller, error) {
		h, err := o.HTTP()
		if err != nil {
			return nil, err
		}
		c := &caller{async: *async}
		transport := a2a.AgentInterface{
			URL:             o.Endpoint,
			ProtocolBinding: a2a.TransportProtocolJSONRPC,
			ProtocolVersion: a2a.Version,
		}
		switch {
		case *rest:
			transport.ProtocolBinding = a2a.TransportProtocolHTTPJSON
		case *overGRPC:
			transport.ProtocolBinding = a2a.TransportProtocolGRPC
		}
		resolver := agentcard.NewResolver(h)
		if *compat {
			transport.ProtocolVersion = a2av0.Version
			resolver.CardParser = a2av0.NewAgentCardParser()
		}
		way := speaking(*rest, *compat, h)
		if *overGRPC {
			if way, err = speakingGRPC(o); err != nil {
				return nil, err
			}
		}
		only := []a2aclient.FactoryOption{a2aclient.WithDefaultsDisabled(), way}
		if o.Endpoint != "" {
			c.sdk, err = a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{&transport}, only...)
			return c, err
		}
		if c.card, err = resolver.Resolve(ctx, o.URL); err != nil {
			return nil, err
		}
		c.sdk, err = a2aclient.NewFromCard(ctx, c.card, only...)
		return c, err
	}
}

// speaking returns the one way to speak that was asked for: a card that does not offer it is an error then, and not
// a reason to speak otherwise.
func speaking(rest, compat bool, h *http.Client) a2aclient.FactoryOption {
	switch {
	case rest && compat:
		return a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: h})
	case compat:
		return a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: h})
	case rest:
		return a2aclient.WithRESTTransport(h)
	}
	return a2aclient.WithJSONRPCTransport(h)
}

// speakingGRPC returns gRPC as the only way to speak. A host and a port do not say whether there is TLS, so the URL of
// the card does.
func speakingGRPC(o client.Options) (a2aclient.FactoryOption, error) {
	secured := insecure.NewCredentials()
	if o.CA != "" || strings.HasPrefix(o.URL, "https:") {
		config, err := o.TLS()
		if err != nil {
			return nil, err
		}
		secured = credentials.NewTLS(config)
	}
	return a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(secured)), nil
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

func (c *caller) request(m client.Message) *a2a.SendMessageRequest {
	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(m.Text))
	message.TaskID, message.ContextID = a2a.TaskID(m.Task), m.Context
	r := &a2a.SendMessageRequest{Message: message}
	if c.async {
		r.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	}
	return r
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
	r, err := c.sdk.SendMessage(ctx, c.request(m))
	return event(r, err)
}

func (c *caller) Stream(ctx context.Context, m client.Message) iter.Seq2[client.Result, error] {
	return events(c.sdk.SendStreamingMessage(ctx, c.request(m)))
}

func (c *caller) Get(ctx context.Context, id string) (client.Result, error) {
	t, err := c.sdk.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.TaskID(id)})
	return event(t, err)
}

func (c *caller) List(ctx context.Context) (client.Result, error) {
	r, err := c.sdk.ListTasks(ctx, &a2a.ListTasksRequest{})
	return client.Result{Kind: "tasks", Value: r}, err
}

func (c *caller) Cancel(ctx context.Context, id string) (client.Result, error) {
	t, err := c.sdk.CancelTask(ctx, &a2a.CancelTaskRequest{ID: a2a.TaskID(id)})
	return event(t, err)
}

func (c *caller) Resubscribe(ctx context.Context, id string) iter.Seq2[client.Result, error] {
	return events(c.sdk.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: a2a.TaskID(id)}))
}

func (c *caller) PushSet(ctx context.Context, id, url, token string) (client.Result, error) {
	r, err := c.sdk.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: a2a.TaskID(id), URL: url, Token: token})
	return client.Result{Kind: "push-config", Value: r}, err
}

func (c *caller) PushGet(ctx context.Context, id, config string) (client.Result, error) {
	r, err := c.sdk.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: a2a.TaskID(id), ID: config})
	return client.Result{Kind: "push-config", Value: r}, err
}
