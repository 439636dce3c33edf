// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// GRPCCaller returns a client of grpc-go for a site, with a certificate or without.
func GRPCCaller(t *testing.T, s *Site, pair ...tls.Certificate) a2apb.A2AServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("localhost:%d", s.Port), grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{RootCAs: Trusted(t), Certificates: pair})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return a2apb.NewA2AServiceClient(conn)
}

// GRPCMessage returns a request with a message of one text.
func GRPCMessage(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: leader.NewID("m"), Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}}
}

// Shown is a task as the events of streams show it.
type Shown struct {
	ID, Text string          // of the task
	State    a2apb.TaskState // the last one
}

// Add adds what an event shows.
func (s *Shown) Add(event *a2apb.StreamResponse) {
	if tk := event.GetTask(); tk != nil {
		s.ID, s.Text, s.State = tk.GetId(), "", tk.GetStatus().GetState()
		for _, a := range tk.GetArtifacts() {
			for _, p := range a.GetParts() {
				s.Text += p.GetText()
			}
		}
	}
	if u := event.GetStatusUpdate(); u != nil {
		s.ID, s.State = u.GetTaskId(), u.GetStatus().GetState()
	}
	if u := event.GetArtifactUpdate(); u != nil {
		if !u.GetAppend() {
			s.Text = ""
		}
		for _, p := range u.GetArtifact().GetParts() {
			s.Text += p.GetText()
		}
	}
}
