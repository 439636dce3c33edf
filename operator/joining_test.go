// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestListBeforeJoining: an operator who asks for a list is told that the store cannot be reached yet.
func TestListBeforeJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		j, err := node.Join(node.JoinConfig{Shards: 2, Name: "one", Log: log, Exiting: t.Context(),
			Join: func(context.Context) (node.Member, error) { return nil, node.MayPass(errors.New("they are down")) }})
		if err != nil {
			t.Fatal(err)
		}
		n := new(node.Node)
		err = n.Open(node.Config{Process: node.NewProcess(node.Host{}), Shards: shard.Join(j, log),
			Log: func(string) *slog.Logger { return log }})
		if err != nil {
			t.Fatal(err)
		}
		a := Open(n, Config{Log: log})
		r := httptest.NewRequestWithContext(t.Context(), "GET", adminapi.Tasks, nil)
		if _, err := a.routes[adminapi.Tasks].answer(a, r); task.KindOf(err) != task.StoreUnavailable {
			t.Errorf("a list of all gateways: %v", err)
		}
		if err := errors.Join(n.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	})
}
