// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

// TestJetStream runs the suite on streams with one replica, and with three.
func TestJetStream(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("R", replicas), func(t *testing.T) {
			t.Parallel()
			replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store {
				return open(t, Config{Replicas: replicas, Settings: s})
			}, replaytest.Options{Parallel: true, Reopen: reopen, Break: breakable(replicas)})
		})
	}
}

// TestOverStandby runs the suite on stores opened with the heads that a standby had read.
func TestOverStandby(t *testing.T) {
	t.Parallel()
	replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store {
		return overStandby(t, open(t, Config{Replicas: 1, Settings: s}), s)
	}, replaytest.Options{Parallel: true, Reopen: overStandby, Break: breakable(1)})
}

// overStandby closes a store, and opens it as another process does that stood by for it.
func overStandby(t *testing.T, st replay.Store, s replay.Settings) replay.Store {
	t.Helper()
	of := st.(opened).of
	c := of.config
	c.Settings = s
	next := openStreams(t, of.nc, c)
	standBy(t, next)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return opened{claim(t, next, 0, "b"), next}
}

// breakable returns a function to open a store on servers of which the majority can be stopped.
func breakable(replicas int) func(t *testing.T, s replay.Settings) (replay.Store, func(bool)) {
	return func(t *testing.T, s replay.Settings) (replay.Store, func(bool)) {
		own := cluster(t, replicas, natstest.Config{})
		st := streams(t, connect(t, own.URL()), Config{Replicas: replicas, Settings: s, GiveUp: 10 * time.Second})
		return claim(t, st, 0, "a"), func(broken bool) {
			for _, server := range own.Servers[:replicas/2+1] {
				if broken {
					server.Kill()
				} else if err := server.Run(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestServerKilled runs the suite while servers are killed, one after the other, and come back. No test may notice more
// than a delay.
func TestServerKilled(t *testing.T) {
	own := cluster(t, 3, natstest.Config{})
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-time.After(12 * time.Second):
			}
			s := own.Servers[i%len(own.Servers)]
			s.Kill()
			if err := s.Run(); err != nil {
				t.Error(err)
				return
			}
			if err := own.Ready(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		killer.Wait()
	})
	t.Run("suite", func(t *testing.T) {
		replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store {
			st := streams(t, connect(t, own.URL()), Config{Replicas: 3, Settings: s, GiveUp: time.Minute})
			return opened{claim(t, st, 0, "a"), st}
		}, replaytest.Options{Parallel: true, Reopen: reopen, Break: breakable(3)})
	})
}
