// SPDX-License-Identifier: Apache-2.0

package caddymodule

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
)

// unsyncedAdvice says what servers need that sync their writes only now and then.
const unsyncedAdvice = "set sync_interval: always in the jetstream block of its configuration, since otherwise " +
	"writes that were acknowledged are lost when servers lose their power"

// monitorTimeout is how long a server may take to answer about itself.
const monitorTimeout = 3 * time.Second

// unsyncedError says that a server does not sync each write.
type unsyncedError struct{ server, interval string }

func (e *unsyncedError) Error() string {
	return fmt.Sprintf("the NATS server at %s syncs its writes to the disk every %s only; %s", e.server, e.interval,
		unsyncedAdvice)
}

// checkSync asks the monitoring endpoint of a server whether it syncs each write. The error is an unsyncedError if it
// does not, and otherwise says why that is not known.
func checkSync(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	at, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("jsz").String(), nil)
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("the monitoring of a NATS server cannot be reached (%w); start it with http: 8222, or correct "+
			"monitor", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	said := gjson.GetManyBytes(text, "config", "disabled", "config.sync_always", "config.sync_interval")
	switch {
	case err != nil || r.StatusCode != http.StatusOK || !said[0].Exists() && !said[1].Bool():
		return fmt.Errorf("%s is not the monitoring endpoint of a NATS server, which answers /jsz; correct monitor", endpoint)
	case said[1].Bool():
		return fmt.Errorf("the NATS server at %s has no JetStream; add a jetstream block to its configuration", endpoint)
	case !said[2].Bool():
		return &unsyncedError{endpoint, time.Duration(said[3].Int()).String()}
	}
	return nil
}

// checkServers refuses servers that do not sync each write, as far as their monitoring can be asked.
func (s *JetStreamStore) checkServers(ctx context.Context, log *slog.Logger) error {
	for _, endpoint := range s.Monitor {
		err := checkSync(ctx, endpoint)
		if errors.As(err, new(*unsyncedError)) {
			return err
		}
		if err != nil {
			log.Warn("whether a NATS server syncs each write is not known", "server", endpoint, "error", err)
		}
	}
	return nil
}

// Examine implements examinedDriver. It logs in to a server, and asks all whose monitoring is named.
func (s *JetStreamStore) Examine() error {
	conn, err := s.dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return s.explainDial(err)
	}
	defer conn.Close()
	if len(s.Monitor) == 0 {
		return &uncheckedError{"it can be written, but it is not known whether the NATS servers sync each write: " +
			"name their monitoring endpoints in monitor, such as http://host:8222, to have it checked"}
	}
	for _, endpoint := range s.Monitor {
		if err := checkSync(context.Background(), endpoint); err != nil {
			return err
		}
	}
	return nil
}
