// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// wellKnown is the folder of cards.
const wellKnown = "/.well-known/"

// card looks for the agent's card at its configured place, else below its base, then at the root of its host, its place
// in the specification. It returns nil if there is no readable one. Only an unreachable agent is an error.
func (d *discovery) card() (*translate.Card, error) {
	paths, fields := d.config.Finder.Places()
	switch {
	case d.config.ReadCard != nil:
		body, err := d.config.ReadCard()
		if err != nil {
			d.keepProblem("its card cannot be read: " + err.Error())
			return nil, nil
		}
		return d.parse(body, paths[0]), nil
	case d.config.CardURL != "":
		u, err := httptransport.ParseURL(d.config.CardURL)
		if err != nil {
			return nil, err
		}
		return d.cardAt(u, fields)
	}
	for _, u := range d.places(paths) {
		if d.remaining == 0 {
			break
		}
		if card, err := d.cardAt(u, fields); card != nil || err != nil {
			return card, err
		}
	}
	return nil, nil
}

// places returns the possible places of the card.
func (d *discovery) places(paths []string) (all []*url.URL) {
	isPlace := func(place string) bool { return strings.HasSuffix(d.origin.Path, place) }
	if d.origin.RawQuery != "" || path.Ext(d.origin.Path) == ".json" && !slices.ContainsFunc(paths, isPlace) {
		all = append(all, d.origin)
	}
	root := url.URL{Scheme: d.base.Scheme, Host: d.base.Host, Path: "/"}
	under := []*url.URL{d.base}
	name := path.Base(d.base.Path)
	if name != "/" {
		under = append(under, &root)
	}
	for _, base := range under {
		for _, place := range paths {
			all = append(all, base.JoinPath(place))
		}
	}
	if name != "/" { // Lenient: servers of several agents have the card of each below its name
		all = append(all, root.JoinPath(wellKnown, name, path.Base(paths[0])))
	}
	return all
}

// cardAt returns the card at a URL; nil if there is no readable one.
func (d *discovery) cardAt(u *url.URL, fields []translate.Field) (*translate.Card, error) {
	a, err := d.ask(http.MethodGet, u, fields, nil)
	if to := a.slashed(u); err == nil && to != nil && d.remaining > 0 {
		a, err = d.ask(http.MethodGet, to, fields, nil)
	}
	switch {
	case err != nil:
		return nil, err
	case a.status != http.StatusOK:
		if a.status != http.StatusNotFound {
			d.keepProblem(a.problem())
		}
		return nil, nil
	case a.tooLarge:
		d.keepProblem("its card is larger than " + strconv.Itoa(maxCard) + " bytes")
		return nil, nil
	}
	return d.parse(a.body, u.Path), nil
}

// parse returns the card found at a path; nil for anything else.
func (d *discovery) parse(body []byte, at string) *translate.Card {
	card, err := d.config.Finder.Card(body)
	if err != nil {
		var e *task.Error
		if errors.As(err, &e) {
			d.keepProblem(strings.Replace(e.Detail, "the agent's", "its", 1))
		}
		return nil
	}
	paths, _ := d.config.Finder.Places()
	d.place = paths[0]
	for _, place := range paths {
		if path.Base(place) == path.Base(at) {
			d.place = place
		}
	}
	if len(card.Ignored) > 0 {
		d.keepProblem("of its card, these members have a wrong type and are ignored: " + strings.Join(card.Ignored, ", "))
	}
	return card
}
