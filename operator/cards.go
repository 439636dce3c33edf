// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// cardPatience is how long an operator waits for the first card of an agent.
const cardPatience = 3 * time.Second

// showAgentCard answers with the card that the gateway keeps of the agent of a Partner. Requests do not add up at the
// agent: the gateway reads a card at most once a minute.
func showAgentCard(a *Admin, r *http.Request) (any, error) {
	name := r.URL.Query().Get("partner")
	p := a.Partners().Named(name)
	if p == nil {
		return nil, errUnknownPartner(name)
	}
	ctx, cancel := context.WithTimeout(r.Context(), cardPatience)
	defer cancel()
	out := adminapi.AgentCard{Partner: p.Name}
	card, changed, err := p.Gateway.Card(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Reason = "the agent has not sent its card yet; ask again"
		return out, nil
	case err != nil:
		out.Reason = sentenceOf(err) // without what the connection said
		return out, nil
	case len(card.Raw) == 0:
		out.Reason = "the agent shows no card"
		return out, nil
	}
	out.Changed, out.Name, out.Description, out.Version = changed, card.Name, card.Description, card.Version
	out.Provider, out.Streaming, out.Push, out.Signed = card.Provider.Organization, card.Streaming, card.Push, card.Signed
	out.OriginalCard = card.Raw
	for _, i := range card.Interfaces {
		out.Interfaces = append(out.Interfaces, adminapi.CardInterface{URL: i.URL, Binding: i.Binding, Version: i.Version})
	}
	for i := range card.Skills {
		s := &card.Skills[i]
		out.Skills = append(out.Skills, adminapi.CardSkill{
			ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags,
		})
	}
	return out, nil
}

func errUnknownPartner(name string) error {
	return task.Errorf(task.UnsupportedOperation, "the Partner %q is not in the configuration", name)
}
