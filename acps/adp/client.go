// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxAnswer is how large an answer may be that is read, in bytes. It has one ACS, or none.
const maxAnswer = 2 << 20

// State is what a discovery server knows of an agent.
type State string

// The states of an agent at a discovery server.
const (
	Listed    State = "found"     // it is found, and it is alive as far as the server says
	NotAlive  State = "not-alive" // it is found, and the monitor has heard nothing of it
	Hidden    State = "hidden"    // it is not found, because the server takes it for unavailable
	Inactive  State = "inactive"  // the registry has disabled it
	NotSynced State = "missing"   // the server does not know it
)

// Answer is what a discovery server knows of an agent.
type Answer struct {
	State State
	Seen  time.Time // when the monitor has last heard of it; zero if the server does not say
}

// Client asks a discovery server.
type Client struct {
	URL  string // its base URL, such as https://discovery.example/acps-adp-v2
	HTTP *http.Client
}

// ErrUnclear refuses an answer that is none of ADP.
var ErrUnclear = errors.New("it answers, but not as a discovery server does")

// Ask returns what the server knows of an agent: first whether it is found as a caller would find it, and if not, why.
func (c *Client) Ask(ctx context.Context, aic string) (Answer, error) {
	for _, try := range []struct {
		state State
		more  []any
	}{
		{Listed, nil},
		// The reference hides what its poller does not reach, unless it is asked so. It is none of the specification's
		// fields, so that others refuse it.
		{Hidden, []any{isEqual("onlyAvailable", false)}},
		{Inactive, []any{isEqual("active", false)}},
	} {
		found, err := c.find(ctx, aic, try.more...)
		if refused := (*Error)(nil); try.state == Hidden && errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return Answer{}, err
		}
		if found == nil {
			continue
		}
		a := Answer{State: try.state, Seen: found.seen}
		switch {
		case found.inactive:
			a.State = Inactive
		case try.state == Listed && found.dead:
			a.State = NotAlive
		}
		return a, nil
	}
	return Answer{State: NotSynced}, nil
}

// ACS returns the ACS of an agent as the server has it; nil if it does not find the agent.
func (c *Client) ACS(ctx context.Context, aic string) (json.RawMessage, error) {
	found, err := c.find(ctx, aic)
	if err != nil || found == nil {
		return nil, err
	}
	return found.acs, nil
}

// sighting is an agent as it was found.
type sighting struct {
	acs            json.RawMessage // nil if the server names the agent only
	inactive, dead bool
	seen           time.Time
}

// isEqual returns the condition that a field has a value.
func isEqual(field string, value any) any {
	return map[string]any{"field": field, "op": "eq", "value": value}
}

// find asks for the agent with an AIC that also fulfils more conditions; nil if it is not found. The answer is not
// trusted: an agent that was not asked for counts as none.
func (c *Client) find(ctx context.Context, aic string, more ...any) (*sighting, error) {
	status, answer, err := c.post(ctx, append([]any{isEqual("aic", aic)}, more...))
	if err != nil {
		return nil, err
	}
	return parseAnswer(status, answer, aic)
}

// post sends a query for one agent that fulfils conditions, and returns the answer.
func (c *Client) post(ctx context.Context, conditions []any) (status int, answer []byte, err error) {
	text, err := json.Marshal(map[string]any{"type": Filtered, "limit": MaxLimit,
		"filter": map[string]any{"conditions": conditions}})
	if err != nil {
		return 0, nil, err
	}
	at, err := url.JoinPath(c.URL, "discover")
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return 0, nil, err
	}
	if len(answer) > maxAnswer {
		return 0, nil, fmt.Errorf("%w: the answer has more than %d bytes", ErrUnclear, maxAnswer)
	}
	return res.StatusCode, answer, nil
}

// parseAnswer reads the answer to a query for one agent.
func parseAnswer(status int, answer []byte, aic string) (*sighting, error) {
	var a struct {
		Result *struct {
			ACSMap map[string]json.RawMessage `json:"acsMap"`
			Agents []struct {
				Skills []struct {
					AIC string `json:"aic"`
				} `json:"agentSkills"`
			} `json:"agents"`
			Alive map[string]struct {
				Alive *bool      `json:"alive"`
				Seen  *time.Time `json:"aliveLastSeenAt"`
			} `json:"aliveMap"`
		} `json:"result"`
		Error *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	unclear := fmt.Errorf("%w: status %d", ErrUnclear, status)
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, unclear
	}
	switch {
	case a.Error != nil:
		return nil, &Error{a.Error.Code, clip(a.Error.Message), clip(string(a.Error.Data))}
	case status != http.StatusOK || a.Result == nil:
		return nil, unclear
	}
	named := false
	for _, g := range a.Result.Agents {
		for _, s := range g.Skills {
			named = named || strings.EqualFold(s.AIC, aic)
		}
	}
	acs, listed := a.Result.ACSMap[key(a.Result.ACSMap, aic)]
	if !named && !listed {
		return nil, nil
	}
	var entry struct {
		Active *bool `json:"active"`
	}
	if listed && json.Unmarshal(acs, &entry) != nil {
		return nil, unclear
	}
	s := &sighting{acs: acs, inactive: entry.Active != nil && !*entry.Active}
	alive := a.Result.Alive[key(a.Result.Alive, aic)]
	s.dead = alive.Alive != nil && !*alive.Alive
	if alive.Seen != nil {
		s.seen = *alive.Seen
	}
	return s, nil
}

// key returns the key of a map that is an AIC, in whichever case; AICs are compared without it.
func key[V any](m map[string]V, aic string) string {
	if _, ok := m[aic]; ok {
		return aic
	}
	var all []string
	for k := range m {
		if strings.EqualFold(k, aic) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return aic
	}
	return slices.Min(all)
}
