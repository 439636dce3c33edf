// SPDX-License-Identifier: Apache-2.0

// Command legacy-trpc is an agent that speaks A2A v0.1 (tasks/*) with trpc-a2a-go v0.0.3.
package main

import (
	"flag"
	"log"

	"trpc.group/trpc-go/trpc-a2a-go/auth"
	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/server"
	"trpc.group/trpc-go/trpc-a2a-go/taskmanager"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
)

func main() {
	log.SetFlags(0)
	var f agent.Flags
	f.Register(flag.CommandLine)
	body := flag.String("push", "task", "the `form` of a push notification's body: task, notifyEvent or taskUpdate")
	flag.Parse()
	log.Fatal(run(&f, *body))
}

func run(f *agent.Flags, body string) error {
	listener, err := f.Listen()
	if err != nil {
		return err
	}
	signer := auth.NewPushNotificationAuthenticator()
	if err := signer.GenerateKeyPair(); err != nil {
		return err
	}
	p := &processor{waiting: make(map[string]bool), push: pusher{signer: signer, form: body}}
	tasks, err := taskmanager.NewMemoryTaskManager(p)
	if err != nil {
		return err
	}
	p.push.tasks = tasks
	card := server.AgentCard{
		Name: "legacy-echo", Description: pointer("A2A v0.1 on trpc-a2a-go"), URL: f.URL + "/", Version: "0.0.1",
		Capabilities:      server.AgentCapabilities{Streaming: true, PushNotifications: true, StateTransitionHistory: true},
		DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text", "file", "data"},
		Skills: []server.AgentSkill{{ID: "echo", Name: "Echo", Tags: []string{"test"}}},
	}
	options := []server.Option{
		server.WithJWKSEndpoint(true, "/.well-known/jwks.json"),
		server.WithPushNotificationAuthenticator(signer),
	}
	if f.Key != "" { // the SDK's own guard rather than ours: what it answers is part of the test
		options = append(
			options,
			server.WithAuthProvider(auth.NewAPIKeyAuthProvider(map[string]string{f.Key: "tester"}, agent.KeyHeader)),
		)
		card.Authentication = &protocol.AuthenticationInfo{Schemes: []string{"apiKey"}}
	}
	s, err := server.NewA2AServer(card, tasks, options...)
	if err != nil {
		return err
	}
	return f.Serve(listener, s.Handler())
}

func pointer[T any](v T) *T { return &v }
