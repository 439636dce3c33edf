// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// AgentAPI are those of an agent of the dialect agentapi only.
type AgentAPI struct {
	// For agentapi: reasoning and tools for the Leader. Default: none.
	Expose string `json:"expose,omitempty"`

	// For agentapi: the path to stop a run. Default: none; the connection is closed.
	CancelPath string `json:"cancel_path,omitempty"`
}

func (s *AgentAPI) only() (dialect, names string, set bool) {
	return gateway.AgentAPI, "expose and cancel_path", *s != AgentAPI{}
}

func (s *AgentAPI) check(*Config) error {
	if _, err := agentapi.ParseExpose(s.Expose); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if s.CancelPath != "" {
		if _, err := httptransport.ParsePath(s.CancelPath); err != nil {
			return fmt.Errorf("agent: cancel_path: %w", err)
		}
	}
	return nil
}

func (s *AgentAPI) options(p *conf.Parser) conf.Options {
	return conf.Options{"expose": p.Word(&s.Expose), "cancel_path": p.Word(&s.CancelPath)}
}
