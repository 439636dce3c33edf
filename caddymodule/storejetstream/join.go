// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/handover"
	"github.com/aip-gateway/aip-gateway/cluster/natsdriver"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/build"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

// Continues implements node.SharedDriver. The place of the store, and of this process among the
// others, stay as the first configuration has them.
func (s *Store) Continues(newer node.Driver) error {
	now, then := *newer.(*Store), *s
	now.Limits, then.Limits = store.Limits{}, store.Limits{}
	if reflect.DeepEqual(now, then) {
		return nil
	}
	return errors.New("what store jetstream says about servers, logins and the cluster cannot change while the process " +
		"runs; restart it: it hands its tasks to the other gateways first")
}

// Join implements node.SharedDriver.
func (s *Store) Join(log *slog.Logger, host node.SharedHost) (node.SharedStore, error) {
	if len(s.Monitor) == 0 {
		// What to do: set sync_interval to always there, and monitor here.
		log.Warn("the NATS servers must sync each write, which is not checked without monitor")
	}
	settings := s.Settings()
	settings.MaxSize = 0 // it would drop logs
	j, err := node.Join(node.JoinConfig{Shards: s.Shards, Name: s.Node, Settings: settings, Log: log,
		Exiting: host.Exiting(),
		Join:    func(ctx context.Context) (node.Member, error) { return s.join(ctx, log, host) }})
	if err != nil {
		return nil, err
	}
	return joinedStore{j}, nil
}

// join connects to the servers, makes or checks the streams, and joins the gateways that share them.
func (s *Store) join(ctx context.Context, log *slog.Logger, host node.SharedHost) (_ node.Member, err error) {
	conn, err := s.dial(log)
	if err != nil {
		explained := s.explainDial(err)
		if serversRefuse(err) {
			return nil, explained
		}
		return nil, node.MayPass(explained)
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	if err := s.checkOrWarn(ctx, log); err != nil {
		return nil, err
	}
	streams, err := jetstream.Open(ctx, conn, jetstream.Config{
		Prefix: s.Prefix, Shards: s.Shards, Replicas: s.Replicas, Log: log,
	})
	if err != nil {
		return nil, ofServers(err)
	}
	registry, err := natsdriver.NewRegistry(conn, s.Prefix, s.Replicas)
	if err != nil {
		return nil, ofServers(err)
	}
	js, err := natsjs.New(conn)
	if err != nil {
		return nil, err
	}
	m, err := newClusterMember(ctx, cluster.Config{
		Name: s.Node, Version: build.Version(build.Module), Streams: natsdriver.Streams{Streams: streams}, Registry: registry,
		Network: natsdriver.NewNetwork(conn, s.Prefix),
		Lease:   time.Duration(s.Lease), Log: log,
	}, host, func(c *cluster.Cluster) gateway.Owners { return handover.New(c, host.Gateway) })
	if err != nil {
		return nil, err
	}
	m.close, m.counts = conn.Close, streams.Counts
	m.stream = func(ctx context.Context, shard *adminapi.ClusterShard) { s.describe(ctx, js, shard) }
	return m, nil
}

// noPeers is the code of the error that a stream cannot be made because too few servers are there.
const noPeers = 10005

// ofServers returns an error of the servers: one that may pass by itself, unless they have refused something.
func ofServers(err error) error {
	api, ok := errors.AsType[*natsjs.APIError](err)
	if ok && api.Code < http.StatusInternalServerError && api.ErrorCode != noPeers {
		return err
	}
	for _, of := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed,
		nats.ErrDisconnected, natsjs.ErrNoStreamResponse, natsjs.ErrJetStreamNotEnabled} {
		ok = ok || errors.Is(err, of)
	}
	if ok {
		return node.MayPass(err)
	}
	return err
}

// describe adds what the servers know of the stream of a shard.
func (s *Store) describe(ctx context.Context, js natsjs.JetStream, shard *adminapi.ClusterShard) {
	shard.Stream = fmt.Sprintf("%s-%d", s.Prefix, shard.Shard)
	stream, err := js.Stream(ctx, shard.Stream)
	if err != nil {
		return // it has no leader now
	}
	info := stream.CachedInfo()
	shard.Messages, shard.Bytes = info.State.Msgs, info.State.Bytes
	if info.Cluster == nil {
		return
	}
	shard.Leader = info.Cluster.Leader
	for _, replica := range info.Cluster.Replicas {
		shard.Lag = max(shard.Lag, replica.Lag)
		if replica.Offline {
			shard.Down = append(shard.Down, replica.Name)
		}
	}
}
