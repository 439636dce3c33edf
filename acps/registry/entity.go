// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Entity is a Partner to be registered as an entity of an ontology. The ontology is an agent registered without an
// endpoint. Its endpoints and the names in its certificate are its own, and all else is the ontology's. No person
// decides about it.
type Entity struct {
	Partner  string          // the Partner's URL
	ACS      json.RawMessage // its endpoints and names count
	Ontology string          // the AIC
	// At is the registry's client for entities. It shows the registry the certificate of the ontology.
	At *Client
	// NewVersion allows an entity beside an existing registration of the Partner, unless that is the entity itself, with
	// its endpoint. It gets another AIC.
	NewVersion bool
}

// ErrNoNames: the registry has not kept the names for the certificate of an entity. One of ACPs 2.1 does not.
var ErrNoNames = errors.New("the registry keeps no names for the certificate of an entity, so that its authority " +
	"would issue one that no Leader accepts for the Partner's host")

const entityPath = "/acps-atr-v2/entity"

// RegisterEntity registers a Partner as an entity. A registry has one entity for a URL, so the same order may be given
// again at any time, also after a crash or a lost answer.
func (a *Account) RegisterEntity(ctx context.Context, o Entity) (*Record, error) {
	var body entityBody
	switch err := json.Unmarshal(o.ACS, &body); {
	case err != nil:
		return nil, fmt.Errorf("the ACS cannot be read: %w", err)
	case len(body.Certificate.AltNames.all()) == 0:
		return nil, errors.New("the ACS asks for no names in the certificate")
	case strings.Contains(o.Partner, placeholder):
		return nil, errors.New("the URL of an entity has {AIC}, in whose place the registry puts nothing")
	}
	body.Ontology = o.Ontology
	return a.work(ctx, o.Partner, func(r *Record) error {
		switch c := r.Current; {
		case r.Next != nil:
			return fmt.Errorf("%w: %s %s is %s", ErrUnfinished, r.Next.Name, r.Next.Version, r.Next.Status)
		case c == nil || c.Status == Deleted:
		case c.Ontology == o.Ontology && !(o.NewVersion && c.moved(o.ACS)):
			return a.refresh(ctx, r)
		case !o.NewVersion:
			return fmt.Errorf("%w: %s, with the AIC %s", ErrNewVersion, c.Version, c.AIC)
		}
		e, err := a.entity(ctx, o.At, &body)
		if err == nil {
			r.take(e)
		}
		return err
	})
}

// entityBody is the content of an entity.
type entityBody struct {
	Ontology    string            `json:"ontologyAic"`
	EndPoints   []json.RawMessage `json:"endPoints"`
	Certificate certificate       `json:"certificate"`
}

// certificate is the content of a certificate, as an authority is asked for it.
type certificate struct {
	AltNames altNames `json:"altNames"`
	Validity int      `json:"requestedValidity,omitempty"` // in days
}

type altNames struct {
	DNS []string `json:"dns,omitempty"`
	IP  []string `json:"ip,omitempty"`
}

// all returns the names, sorted.
func (n altNames) all() []string { return slices.Sorted(slices.Values(slices.Concat(n.DNS, n.IP))) }

// entity makes an entity, unless there is one of the ontology at the same URL already.
func (a *Account) entity(ctx context.Context, at *Client, body *entityBody) (*Entry, error) {
	var made struct {
		Result struct {
			AIC string `json:"entityAic"`
		} `json:"result"`
	}
	err := a.doAt(ctx, at, call{method: http.MethodPost, path: entityPath, body: body}, &made)
	aic, isNew := made.Result.AIC, err == nil
	if e, is := errors.AsType[*Error](err); is && e.Kind == Conflict && e.Existing != "" &&
		family(e.Existing) == family(body.Ontology) {
		aic, err = e.Existing, nil // an answer was lost
	}
	if err != nil {
		return nil, err
	}
	e, err := a.byAIC(ctx, aic)
	if err != nil {
		return nil, err
	}
	var kept entityBody
	if json.Unmarshal(e.ACS, &kept) == nil &&
		slices.Equal(kept.Certificate.AltNames.all(), body.Certificate.AltNames.all()) {
		e.Ontology = body.Ontology
		return e, nil
	}
	if !isNew {
		return nil, fmt.Errorf("%w: of the entity %s, which is there already; delete it at the registry", ErrNoNames, e.AIC)
	}
	err = a.do(ctx, call{method: http.MethodDelete, path: agentsPath + "/" + url.PathEscape(e.ID)}, nil)
	return nil, errors.Join(ErrNoNames, err)
}

// family returns the common part of the AICs of an ontology and of its entities: all levels before the instance.
func family(aic string) string {
	levels := strings.Split(strings.ToUpper(aic), ".")
	return strings.Join(levels[:max(0, len(levels)-2)], ".")
}

// byAIC returns the agent of the user with an AIC.
func (a *Account) byAIC(ctx context.Context, aic string) (*Entry, error) {
	got, err := a.list(ctx, url.Values{"aic": {aic}})
	if err != nil {
		return nil, err
	}
	for i := range got.Items {
		if strings.EqualFold(got.Items[i].AIC, aic) {
			return got.Items[i].entry()
		}
	}
	return nil, &Error{Kind: Forbidden, Detail: "the entity " + printable(aic) + " at this URL is none of the user's"}
}
