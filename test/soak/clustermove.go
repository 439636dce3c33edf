// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// moveEvery is how often an operator moves a shard, whatever else happens.
const moveEvery = 5 * time.Second

// mover moves one shard after the other to one gateway after the other, so that each gateway has its share.
type mover struct {
	*cluster
	still sync.Mutex // held while a shard is moved, and while a take-over is measured
	tried int
	moved int
}

// run moves shards until ctx is done.
func (m *mover) run(ctx context.Context) {
	for wait(ctx, moveEvery); ctx.Err() == nil; wait(ctx, moveEvery) {
		m.still.Lock()
		if m.move(ctx) == nil { // else the gateway is not there, or the other one
			m.moved++
		}
		m.still.Unlock()
	}
}

// move moves the next shard by way of the next gateway.
func (m *mover) move(ctx context.Context) error {
	by := m.nodes[m.tried%len(m.nodes)]
	m.tried++
	r, err := by.report(ctx)
	if err != nil || len(r.Shards) == 0 {
		return fmt.Errorf("%s knows no shards: %w", by.name, err)
	}
	shard, to := m.next(len(r.Shards))
	return by.post(ctx, adminapi.MoveShard, adminapi.ShardMove{Shard: &shard, To: m.nodes[to].name})
}

// next returns which of so many shards is moved now, and the index of the gateway that gets it. In each round, a shard
// gets to another gateway than in the one before.
func (m *mover) next(shards int) (shard, to int) {
	n := m.tried - 1
	return n % shards, (n%shards + n/shards) % len(m.nodes)
}

// post has the admin API of the gateway do something.
func (n *node) post(ctx context.Context, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, moveEvery)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.admin+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", n.name, path, res.Status)
	}
	return nil
}
