// SPDX-License-Identifier: Apache-2.0

package aunpeer_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
)

// events takes the events of a connection.
type events chan gjson.Result

func (events) Request(context.Context, *aun.Request) {}

func (e events) Event(_ *aun.Conn, method string, params gjson.Result) {
	if method == "challenge" {
		e <- params
	}
}

// TestAun: the client side of package aun logs in to the scripted gateway. It need not have the issuer's certificate
// beforehand.
func TestAun(t *testing.T) {
	n := open(t)
	for name, roots := range map[string]string{
		"with the issuer": n.pki.Issuer.ChainPEM(), "with the root only": n.pki.Root.ChainPEM(),
	} {
		t.Run(name, func(t *testing.T) {
			c := n.client("alice.aid.test")
			trusted := must(aun.NewRoots([]byte(roots)))(t)
			id := must(aun.ParseIdentity([]byte(must(c.ID.PEM())(t))))(t)
			url := must(c.Discover(limit(t)))(t)
			ws, _, err := websocket.Dial(limit(t), url, &websocket.DialOptions{HTTPClient: c.HTTP})
			if err != nil {
				t.Fatal(err)
			}
			challenge := make(events, 1)
			conn := aun.NewConn(ws, challenge, aun.Limits{}, slog.New(slog.DiscardHandler))
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn.Serve(context.WithoutCancel(t.Context()))
			}()
			defer func() {
				conn.Close(aun.CloseNormal, "")
				<-served
			}()
			nonce := (<-challenge).Get("nonce").String()
			tokens, err := aun.Login(limit(t), conn, id, trusted, nil)
			if err != nil {
				t.Fatal(err)
			}
			hello, err := aun.Connect(limit(t), conn, nonce, tokens, "", "")
			if err != nil || !hello.Has("task") {
				t.Fatalf("%+v, %v", hello, err)
			}
			if _, err := conn.Call(limit(t), "task.create",
				[]byte(`{"to":"unknown.aid.test","input":{"type":"text","content":"x"}}`)); err == nil {
				t.Error("a task is created for an agent that is not there")
			}
		})
	}
}
