// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/clustertest"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// testHost is a process with one Partner.
type testHost struct{ partner string }

func (testHost) Gateway(string) *gateway.Gateway { return nil }
func (h testHost) PartnerNames() []string        { return []string{h.partner} }
func (testHost) Busy(int) string                 { return "" }
func (testHost) Exiting() context.Context        { return context.Background() }

// joinWorld has a process join others in memory.
func joinWorld(t *testing.T, w *clustertest.World, name string) (joinedStore, *shard.Set, error) {
	link := w.Link()
	log := slog.New(slog.DiscardHandler)
	join := func(ctx context.Context) (node.Member, error) {
		m, err := newClusterMember(ctx, cluster.Config{Name: name, Version: "v1", Streams: link, Registry: link,
			Network: link, Lease: 300 * time.Millisecond, Log: log}, testHost{"partner of " + name},
			func(*cluster.Cluster) gateway.Owners { return nil })
		if err != nil {
			return nil, err
		}
		m.close = link.Kill
		m.stream = func(_ context.Context, s *adminapi.ClusterShard) { s.Stream, s.Leader = "stream", "server" }
		return m, nil
	}
	j, err := node.Join(node.JoinConfig{Shards: link.Count(), Name: name, Log: log, Exiting: t.Context(), Join: join})
	if err != nil {
		return joinedStore{}, nil, err
	}
	return joinedStore{j}, shard.Join(j, log), nil
}

// joinTwo has two gateways join a world. They leave it at the end of the test.
func joinTwo(t *testing.T, w *clustertest.World) (one, two joinedStore) {
	t.Helper()
	join := func(name string) joinedStore {
		j, set, err := joinWorld(t, w, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(set.Close(), j.Close()); err != nil {
				t.Error(err)
			}
		})
		return j
	}
	return join("one"), join("two")
}

// TestClusterReport: each gateway knows the others, what they own and have, and can have them move and drain.
func TestClusterReport(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := clustertest.New(4)
		one, two := joinTwo(t, w)
		if _, _, err := joinWorld(t, w, "two"); err == nil || !strings.Contains(err.Error(), "see node of store") {
			t.Errorf("a second gateway of one name: %v", err)
		}
		// owned waits until gateways own as many shards as they are to, as they and all shards say.
		owned := func(j joinedStore, want map[string]int) (r *adminapi.ClusterReport) {
			t.Helper()
			asynctest.Eventually(t, fmt.Sprintf("the shards are owned as in %v", want), func() bool {
				var err error
				if r, err = j.Report(t.Context(), false); err != nil {
					t.Fatal(err)
				}
				say, are := make(map[string]int), make(map[string]int)
				for _, n := range r.Nodes {
					if n.Shards > 0 {
						say[n.Name] = n.Shards
					}
				}
				for _, s := range r.Shards {
					are[s.Owner]++
				}
				return maps.Equal(say, want) && maps.Equal(are, want)
			})
			return r
		}
		r := owned(one, map[string]int{"one": 2, "two": 2})
		if r.Node != "one" || len(r.Nodes) != 2 {
			t.Fatalf("the report is %+v", r)
		}
		for _, n := range r.Nodes {
			if n.State != adminapi.NodeUp || n.Heard.IsZero() || n.Version != "v1" {
				t.Errorf("a node is %+v", n)
			}
			if diff := cmp.Diff([]string{"partner of " + n.Name}, n.Partners); diff != "" {
				t.Errorf("its Partners (-want +got):\n%s", diff)
			}
		}
		for i, s := range r.Shards {
			if s.Shard != i || s.Should != "" || s.Epoch == 0 || s.Since.IsZero() || s.Leader != "server" {
				t.Errorf("a shard is %+v", s)
			}
		}

		if err := one.Move(t.Context(), 0, "three"); err == nil {
			t.Error("a shard moves to a gateway that there is not")
		}
		to := map[string]string{"one": "two", "two": "one"}[r.Shards[0].Owner]
		if err := one.Move(t.Context(), 0, to); err != nil {
			t.Fatal(err)
		}
		asynctest.Eventually(t, "the shard has moved", func() bool {
			r, err := two.Report(t.Context(), false)
			return err == nil && r.Shards[0].Owner == to
		})
		if name, err := one.Drain(t.Context(), "", true); name != "one" || err != nil {
			t.Errorf("%s drains: %v", name, err)
		}
		if r = owned(two, map[string]int{"two": 4}); r.Nodes[0].State != adminapi.NodeDraining {
			t.Errorf("the drained node is %+v", r.Nodes[0])
		}
	})
}

// TestClusterReportInTime: a gateway that does not answer does not keep the others from the report.
func TestClusterReportInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := clustertest.New(2)
		one, two := joinTwo(t, w)
		two.Handle(describeService, func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		r, err := one.Report(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 2*node.Patience || len(r.Nodes) != 2 || len(r.Nodes[0].Partners) != 1 ||
			!slices.Equal(r.Missing, []string{"two"}) {
			t.Errorf("after %v the report is %+v", took, r)
		}
		begun = time.Now()
		if r, err = one.Report(ctx, true); err != nil || len(r.Nodes) != 2 || len(r.Shards) > 0 || time.Since(begun) > 0 {
			t.Errorf("after %v the brief report is %+v, %v", time.Since(begun), r, err)
		}
	})
}
