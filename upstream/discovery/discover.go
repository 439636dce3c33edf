// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// Config is the place of an agent. URL and Finder are required.
type Config struct {
	URL    string // the agent's base, or the URL of its card, http or https
	Finder translate.Finder

	// CardURL is the URL of the agent's card, http or https, or ReadCard reads it; without either it is looked for below
	// the URL, at the root of its host, and by the name of the agent there. Any other host or port than in URL gets
	// neither Header nor TLS.
	CardURL  string
	ReadCard func() ([]byte, error)

	Header http.Header // sent with every request: the gateway's credentials for the agent. It is never logged
	TLS    *tls.Config // for https; default: the system's roots
	// Dial opens the connections; default: TCP, directly. The proxy settings of the environment are not used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Found is the result of a search: an agent's dialect and endpoint.
type Found struct {
	Dialect string          // the name of the dialect
	URL     string          // the endpoint: always of the configured scheme, host and port
	Card    *translate.Card // nil if the agent shows none
	Why     string          // the grounds of the finding, a sentence for the log
}

// Discover finds the dialect of an agent, and its URL: by its card, and by questions changing nothing, because cards
// are wrong often enough. If the agent's answers prove nothing, its card is believed. It sends at most maxQuestions
// requests, one after another; ctx ends them. Errors name the change to be made by the operator.
func Discover(ctx context.Context, config Config) (Found, error) {
	d, err := newDiscovery(ctx, config)
	if err != nil {
		return Found{}, err
	}
	card, err := d.card()
	if err != nil {
		return Found{}, err
	}
	found, err := d.find(card)
	found.Card = card
	return found, err
}

// FetchCard fetches the card of an agent of a known dialect. An agent showing none is an error.
func FetchCard(ctx context.Context, config Config) (*translate.Card, error) {
	d, err := newDiscovery(ctx, config)
	if err != nil {
		return nil, err
	}
	card, err := d.card()
	if err == nil && card == nil {
		var why error
		if !d.troubled && config.ReadCard == nil {
			why = errNoCard
		}
		err = upstream.Failed(task.InvalidAgentResponse, upstream.CardMissing, why,
			"the agent shows no card, neither below its URL nor at the root of its host%s", d.withProblem())
	}
	return card, err
}

// errNoCard is the error of an agent denying a card in all places.
var errNoCard = errors.New("there is no card")

// discovery is one search. It is used by one goroutine only.
type discovery struct {
	asker
	config  Config
	place   string   // of the places of cards, the place of the found one
	base    *url.URL // the configured one, without the place of a card
	problem string   // the first odd thing, for the error if there is one; empty for none
	probes  []translate.Probe
	asked   []question        // with their answers
	slashed map[string]string // endpoints, with the URLs of the agent's redirects
}

// question is a probe sent to an endpoint.
type question struct {
	endpoint, dialect, asks string
	answer                  answer
}

func newDiscovery(ctx context.Context, config Config) (*discovery, error) {
	configured, err := httptransport.ParseURL(config.URL)
	switch {
	case err != nil:
		return nil, err
	case config.Finder == nil:
		return nil, errors.New("a finder of dialects is missing")
	}
	base := *configured
	if before, _, is := strings.Cut(base.Path, wellKnown); is && path.Ext(base.Path) == ".json" {
		base.Path, base.RawPath = before, "" // it is that of the card
	}
	base.ForceQuery = false
	rooted(&base)
	return &discovery{
		asker: newAsker(ctx, config, configured), config: config, base: &base,
		probes: config.Finder.Probes("aip-gateway-" + rand.Text()), slashed: make(map[string]string),
	}, nil
}

// keepProblem keeps a problem, if it is the first.
func (d *discovery) keepProblem(what string) {
	if d.problem == "" {
		d.problem = what
	}
}

func (d *discovery) withProblem() string {
	if d.problem == "" {
		return ""
	}
	return " (" + d.problem + ")"
}

// failed is the error of a search without a result.
func (d *discovery) failed(what string) error {
	what += d.answers()
	if !strings.Contains(what, d.problem) {
		what += d.withProblem()
	}
	return upstream.Failed(task.InvalidAgentResponse, upstream.DialectUnknown, nil,
		"%s; the operator must check the agent's URL and credentials, or name its dialect", what)
}

// answers returns a summary of the answers to all questions, such as " (GetTask: not known)". It holds nothing written
// by the agent, and no URL.
func (d *discovery) answers() string {
	var said []string
	asked := make(map[string][]string) // by the answers
	for _, q := range d.asked {
		what := "not known"
		switch {
		case q.answer.status == 0:
			what = "no answer"
		case q.answer.verdict == translate.Unsure:
			what = q.answer.problem()
		}
		if asked[what] == nil {
			said = append(said, what)
		}
		if !slices.Contains(asked[what], q.asks) {
			asked[what] = append(asked[what], q.asks)
		}
	}
	for i, what := range said {
		said[i] = " (" + strings.Join(asked[what], ", ") + ": " + what + ")"
	}
	return strings.Join(said, "")
}

// Ask asks an agent at its configured URL the question of a dialect's probe. It returns an error if the agent was not
// reached.
func Ask(ctx context.Context, config Config, p *translate.Probe) (translate.Verdict, error) {
	d, err := newDiscovery(ctx, config)
	if err != nil {
		return translate.Unsure, err
	}
	a, err := d.ask(http.MethodPost, d.base, p.Header, p.Body)
	if err != nil || a.tooLarge {
		return translate.Unsure, err
	}
	return p.Judge(a.body), nil
}
