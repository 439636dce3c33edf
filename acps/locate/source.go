// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/registry"
)

// Source gives the ACS of agents. An error is a *registry.Error.
type Source struct {
	Name string // for logs and errors
	ACS  func(ctx context.Context, aic string) (json.RawMessage, error)
	// Standing returns what a feed knows of an agent; nil without a feed.
	Standing func(aic string) registry.Standing

	kind string // what its errors call it; empty for a registry
}

// Registry returns a registry as a source, with its feed; nil for none.
func Registry(c *registry.Client, feed *registry.Feed) Source {
	s := Source{Name: "registry " + c.URL(), ACS: c.ACS}
	if feed != nil {
		s.Standing = feed.Agent
	}
	return s
}

// Discovery returns a discovery server as a source.
func Discovery(c *adp.Client) Source {
	s := Source{Name: "discovery " + c.URL, kind: "the discovery server"}
	s.ACS = func(ctx context.Context, aic string) (json.RawMessage, error) {
		acs, err := c.ACS(ctx, aic)
		refused, isRefused := errors.AsType[*adp.Error](err)
		switch {
		case isRefused:
			return nil, &registry.Error{Kind: registry.Refused, Cause: refused}
		case errors.Is(err, adp.ErrUnclear):
			return nil, &registry.Error{Kind: registry.Malformed, Cause: err}
		case err != nil:
			return nil, &registry.Error{Kind: registry.Unavailable, Cause: err}
		case acs == nil:
			return nil, &registry.Error{Kind: registry.NotFound}
		}
		return acs, nil
	}
	return s
}
