// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// find finds the dialect: first it checks the card's offers; then it asks every question at every endpoint; then it
// believes the card.
func (d *discovery) find(card *translate.Card) (Found, error) {
	offers := d.offers(card)
	if found, ok, err := d.checkOffers(offers); ok || err != nil {
		return found, err
	}
	if found, ok, err := d.askEverywhere(card, offers); ok || err != nil {
		return found, err
	}
	if found, ok := d.believe(offers); ok {
		return found, nil
	}
	return Found{}, d.notFound(card)
}

// offers returns a card's offers at usable endpoints.
func (d *discovery) offers(card *translate.Card) (offers []offer) {
	if card == nil {
		return nil
	}
	for _, o := range d.config.Finder.Offers(card, d.place) {
		if o.URL == "" {
			offers = append(offers, offer{Offer: o, url: d.base.String()})
		} else if u, moved := d.endpoint(o); u != "" {
			offers = append(offers, offer{o, u, moved})
		}
	}
	if len(offers) == 0 {
		d.keepProblem("its card lists no interface that the gateway speaks")
	}
	return offers
}

// checkOffers asks each endpoint in the card whether it speaks the dialect in the card.
func (d *discovery) checkOffers(offers []offer) (found Found, ok bool, _ error) {
	for i, o := range offers {
		p := d.probe(o.Dialect)
		switch {
		case o.Dialect == "", o.OwnPort: // at the configured port, the agent may speak something else
			continue
		case p == nil && i == 0:
			return d.found(o, o.Why), true, nil // there is no question for it
		case p == nil:
			continue // a card once wrong is believed last
		}
		switch a, err := d.try(o.url, p); {
		case err != nil:
			return Found{}, false, err
		case a.verdict == translate.Yes:
			return d.found(o, o.Why+", and "+p.Why), true, nil
		case a.unauthorized():
			why := o.Why + ", and it answers only callers that it knows (" + a.problem() + ")"
			return d.found(o, why), true, nil
		}
	}
	return Found{}, false, nil
}

// askEverywhere asks every question at every endpoint in the card, at the configured URL, and at the likely places of
// an endpoint moved by a proxy.
func (d *discovery) askEverywhere(card *translate.Card, offers []offer) (found Found, ok bool, _ error) {
	endpoints := make([]offer, 0, len(offers)+1)
	for _, o := range append(offers, offer{url: d.base.String()}) {
		if !o.OwnPort && !slices.ContainsFunc(endpoints, func(e offer) bool { return e.url == o.url }) {
			endpoints = append(endpoints, o)
		}
	}
	if found, ok, err := d.askAt(endpoints, card, offers); ok || err != nil {
		return found, ok, err
	}
	return d.askAt(d.behindPrefixes(offers), card, offers)
}

// askAt asks every question at endpoints.
func (d *discovery) askAt(endpoints []offer, card *translate.Card, offers []offer) (found Found, ok bool, _ error) {
	for _, e := range endpoints {
		for i := range d.probes {
			p := &d.probes[i]
			a, err := d.try(e.url, p)
			if err != nil {
				return Found{}, false, err
			}
			if a.verdict == translate.Yes {
				e.Dialect = p.Dialect
				return d.found(e, p.Why+"; "+d.mismatch(card, offers, p.Dialect)), true, nil
			}
		}
	}
	return Found{}, false, nil
}

// believe takes the card's offers without a proof, because agents without webhooks may know none of the questions. An
// offer denied by the agent is taken last, before one with a guessed dialect.
func (d *discovery) believe(offers []offer) (found Found, ok bool) {
	for _, denied := range []bool{false, true} {
		for _, o := range offers {
			o.url = d.placeOf(o)
			switch {
			case o.OwnPort && !denied:
				return d.found(o, o.Why), true // there is no question for it
			case o.Dialect != "" && d.denied(o) == denied:
				return d.found(o, o.Why+", though no answer of the agent proves it"), true
			}
		}
	}
	for _, o := range offers {
		if o.Likely != "" && d.isServed(o.url) {
			o.Dialect = o.Likely
			return d.found(o, o.Why+", and no answer of the agent proves one"), true
		}
	}
	return Found{}, false
}

// isServed reports whether an endpoint has answered a question like one taking requests.
func (d *discovery) isServed(endpoint string) bool {
	return slices.ContainsFunc(d.asked, func(q question) bool {
		if q.endpoint != endpoint || q.answer.status == 0 {
			return false
		}
		switch status := q.answer.status; status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
			return q.answer.object
		default:
			return status < 300 || status >= 400
		}
	})
}

// notFound is the error of a search without a dialect found.
func (d *discovery) notFound(card *translate.Card) error {
	if card == nil {
		return d.failed("the agent shows no card, and answers no question as a known version would")
	}
	if why := d.config.Finder.Unsupported(card); why != "" {
		return task.Errorf(task.InvalidAgentResponse, "%s", why)
	}
	return d.failed("the agent's card names no version, and the agent answers no question as a known version would")
}

// mismatch names the card's error if a question has found the dialect.
func (d *discovery) mismatch(card *translate.Card, offers []offer, dialect string) string {
	switch {
	case card == nil:
		return "it shows no card"
	case len(offers) == 0:
		return d.problem
	case offers[0].Dialect == "":
		return offers[0].Why
	case offers[0].Dialect == dialect:
		return "not where its card says"
	}
	return "not as its card says: " + strings.TrimPrefix(offers[0].Why, "its card ")
}

func (d *discovery) probe(dialect string) *translate.Probe {
	for i := range d.probes {
		if d.probes[i].Dialect == dialect {
			return &d.probes[i]
		}
	}
	return nil
}

// denied reports whether the agent has answered that it does not speak an offer of its card.
func (d *discovery) denied(o offer) bool {
	return slices.ContainsFunc(d.asked, func(q question) bool {
		return q.endpoint == o.url && q.dialect == o.Dialect && q.answer.verdict == translate.No
	})
}

// try asks an endpoint a question, once. An endpoint answering by no JSON object is not asked again: it is not an
// agent's. After maxQuestions, no endpoint is asked.
func (d *discovery) try(endpoint string, p *translate.Probe) (answer, error) {
	for _, q := range d.asked {
		if q.endpoint == endpoint && (q.dialect == p.Dialect || q.answer.verdict == translate.Unsure && !q.answer.object) {
			return q.answer, nil
		}
	}
	if d.remaining == 0 {
		return answer{}, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return answer{}, nil // cannot happen: it was made of one
	}
	if to := d.slashed[endpoint]; to != "" {
		u, _ = url.Parse(to)
	}
	a, err := d.ask(http.MethodPost, u, p.Header, p.Body)
	if to := a.slashed(u); err == nil && to != nil && d.slashed[endpoint] == "" && d.remaining > 0 {
		d.slashed[endpoint] = to.String()
		a, err = d.ask(http.MethodPost, to, p.Header, p.Body)
	}
	switch {
	case d.ctx.Err() != nil:
		return answer{}, err
	case err != nil:
		// The agent can be reached, since it was asked for its card; so this is no endpoint of it.
	case !a.tooLarge:
		a.verdict, a.object = p.Judge(a.body), json.Valid(a.body) && bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("{"))
	}
	a.body = nil
	d.asked = append(d.asked, question{endpoint, p.Dialect, p.Asks, a})
	return a, nil
}
