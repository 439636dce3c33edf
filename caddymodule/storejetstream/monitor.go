// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

// unsyncedAdvice says what servers need that sync their writes only now and then.
const unsyncedAdvice = "set sync_interval: always in the jetstream block of its configuration, since otherwise " +
	"writes that were acknowledged are lost when servers lose their power"

// monitorTimeout is how long a server may take to answer about itself.
const monitorTimeout = 3 * time.Second

// unfitError says that a server cannot be used, and what to do.
type unfitError struct{ reason string }

func (e *unfitError) Error() string { return e.reason }

// natsServer is what a server says of itself.
type natsServer struct {
	id    string
	peers int // servers with JetStream in its cluster, itself included
}

// askServer asks the monitoring endpoint of a server whether the gateway can use it. The error is an unfitError if it
// cannot, and otherwise says why the question is open.
func askServer(ctx context.Context, endpoint string) (s natsServer, err error) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	about, err := askMonitor(ctx, endpoint, "varz", "server_id", "version")
	if err != nil {
		return s, err
	}
	stores, err := askMonitor(ctx, endpoint, "jsz",
		"config", "disabled", "config.sync_always", "config.sync_interval", "meta_cluster.cluster_size")
	switch {
	case err != nil:
		return s, err
	case !about[0].Exists() || !stores[0].Exists() && !stores[1].Bool():
		return s, notMonitoring(endpoint)
	}
	if err := jetstream.CheckVersion(about[1].String()); err != nil {
		return s, &unfitError{fmt.Sprintf("the NATS server at %s cannot be used: %v", endpoint, err)}
	}
	switch {
	case stores[1].Bool():
		return s, fmt.Errorf("the NATS server at %s has no JetStream; add a jetstream block to its configuration", endpoint)
	case !stores[2].Bool():
		return s, &unfitError{fmt.Sprintf("the NATS server at %s syncs its writes to the disk every %s only; %s", endpoint,
			time.Duration(stores[3].Int()), unsyncedAdvice)}
	}
	return natsServer{about[0].String(), int(stores[4].Int())}, nil
}

// askMonitor returns fields of a page of a monitoring endpoint.
func askMonitor(ctx context.Context, endpoint, page string, fields ...string) ([]gjson.Result, error) {
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath(page).String(), nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, fmt.Errorf("the monitoring of a NATS server cannot be reached (%w); start it with http: 8222, or "+
			"correct monitor", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || r.StatusCode != http.StatusOK {
		return nil, notMonitoring(endpoint)
	}
	return gjson.GetManyBytes(text, fields...), nil
}

func notMonitoring(endpoint string) error {
	return fmt.Errorf("%s is not the monitoring endpoint of a NATS server, which answers /varz and /jsz; "+
		"correct monitor", endpoint)
}

// checkServers returns an unfitError for the first server that cannot be used. It calls unknown for each one that
// has not answered the question. It returns how many servers of their cluster no endpoint names.
func (s *Store) checkServers(ctx context.Context, unknown func(string, error)) (unnamed int, err error) {
	named, silent, peers := make(map[string]bool), 0, 0
	for _, endpoint := range s.Monitor {
		server, err := askServer(ctx, endpoint)
		if errors.As(err, new(*unfitError)) {
			return 0, err
		}
		if err != nil {
			silent++
			unknown(endpoint, err)
			continue
		}
		named[server.id] = true
		peers = max(peers, server.peers)
	}
	return max(0, peers-len(named)-silent), nil
}

// checkOrWarn refuses servers that cannot be used, as far as their monitoring can be asked.
func (s *Store) checkOrWarn(ctx context.Context, log *slog.Logger) error {
	unnamed, err := s.checkServers(ctx, func(at string, err error) {
		log.Warn("whether a NATS server syncs each write is not known", "server", at, "error", err)
	})
	if unnamed > 0 {
		log.Warn("there are NATS servers that monitor does not name, which are not checked", "servers", unnamed)
	}
	return err
}

// Examine implements doctor.ExaminedStore. It logs in to a server, and asks all whose monitoring is named.
func (s *Store) Examine() error {
	conn, err := s.dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return s.explainDial(err)
	}
	defer conn.Close()
	if len(s.Monitor) == 0 {
		return &doctor.UncheckedError{Text: "it can be written, but it is not known whether the NATS servers sync each " +
			"write: name their monitoring endpoints in monitor, such as http://host:8222, to have it checked"}
	}
	var first error
	unnamed, err := s.checkServers(context.Background(), func(_ string, err error) {
		if first == nil {
			first = err
		}
	})
	switch {
	case err != nil:
		return err
	case first != nil:
		return first
	case unnamed > 0:
		return &doctor.UncheckedError{Text: fmt.Sprintf("it can be written, but the NATS servers have %d more in their "+
			"cluster than monitor names, which are not checked: name the monitoring endpoints of all, such as "+
			"http://host:8222", unnamed)}
	}
	return nil
}
