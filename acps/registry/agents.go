// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// agent is a registry's form of an agent of the user.
type agent struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	AIC       string    `json:"aic"` // empty before the approval
	ACS       acsText   `json:"acs"`
	Approval  string    `json:"approval_status"`
	Comments  string    `json:"process_comments"`
	Active    *bool     `json:"is_active"`
	Deleted   bool      `json:"is_deleted"`
	Disabled  bool      `json:"is_disabled"`
	Reason    string    `json:"disabled_reason"`
	Submitted time.Time `json:"submitted_at"`
	Processed time.Time `json:"processed_at"`
}

// acsText is an ACS as an object. Some versions of the registry give it as a text.
type acsText json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (a *acsText) UnmarshalJSON(text []byte) error {
	var inner string
	if json.Unmarshal(text, &inner) == nil && inner != "" {
		text = []byte(inner)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		text = nil
	}
	*a = append((*a)[:0], text...)
	return nil
}

// entry returns the kept form of an agent.
func (a *agent) entry() (*Entry, error) {
	e := &Entry{ID: a.ID, Name: a.Name, Version: a.Version, AIC: strings.ToUpper(strings.TrimSpace(a.AIC)),
		ACS: json.RawMessage(a.ACS), Comments: printable(a.Comments), Submitted: a.Submitted, Processed: a.Processed}
	switch a.Approval {
	case "DRAFT":
		e.Status = Draft
	case "PENDING":
		e.Status = Pending
	case "REJECTED":
		e.Status = Rejected
	case "APPROVED":
		if e.Status = Approved; e.AIC == "" {
			return nil, &Error{Kind: Malformed, Detail: "an agent is approved and has no AIC"}
		}
	default:
		return nil, &Error{Kind: Malformed, Detail: "an agent has the status " + strconv.Quote(printable(a.Approval))}
	}
	switch {
	case a.ID == "":
		return nil, &Error{Kind: Malformed, Detail: "an agent has no id"}
	case a.Deleted:
		e.Status = Deleted
	case a.Disabled || a.Active != nil && !*a.Active:
		e.Status, e.Comments = Disabled, printable(a.Reason)
	}
	return e, nil
}

const agentsPath = "/api/v1/agent/client"

// get returns an agent by the registry's id of it.
func (a *Account) get(ctx context.Context, id string) (*Entry, error) {
	return a.change(ctx, http.MethodGet, "/"+url.PathEscape(id), nil)
}

// change sends a request about an agent, and returns the agent.
func (a *Account) change(ctx context.Context, method, path string, body any) (*Entry, error) {
	var got agent
	if err := a.do(ctx, call{method: method, path: agentsPath + path, body: body}, &got); err != nil {
		return nil, err
	}
	return got.entry()
}

// page is one of the pages of the registry's list of agents.
type page struct {
	Items []agent `json:"items"`
	Total int     `json:"total"`
	Size  int     `json:"page_size"`
}

// list returns a page of the agents of the user selected by a query, including inactive ones: a registry leaves these
// out only if is_active asks for it, and refuses unknown parameters.
func (a *Account) list(ctx context.Context, query url.Values) (p page, err error) {
	err = a.do(ctx, call{method: http.MethodGet, path: agentsPath, query: query}, &p)
	return p, err
}

const (
	pageSize = 50
	maxPages = 40 // of the agents of one name
)

// find returns the agents of the user with a name, of any version, but for the deleted ones.
func (a *Account) find(ctx context.Context, name string) ([]*Entry, error) {
	return a.filtered(ctx, "name", name, func(one *agent) bool { return one.Name == name })
}

// findAIC returns the agent of the user with an AIC, unless it was deleted; nil for none.
func (a *Account) findAIC(ctx context.Context, aic string) (*Entry, error) {
	found, err := a.filtered(ctx, "aic", aic, func(one *agent) bool { return strings.EqualFold(one.AIC, aic) })
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// filtered returns the agents of the user selected by a filter, but for the deleted ones. A registry without such a
// filter gives all agents of the user.
func (a *Account) filtered(
	ctx context.Context, filter, value string, is func(*agent) bool,
) (found []*Entry, err error) {
	for n := 1; n <= maxPages; n++ {
		got, err := a.list(ctx, url.Values{filter: {value}, "page_num": {strconv.Itoa(n)},
			"page_size": {strconv.Itoa(pageSize)}})
		if err != nil {
			return nil, err
		}
		for i := range got.Items {
			if got.Items[i].Deleted || !is(&got.Items[i]) {
				continue
			}
			e, err := got.Items[i].entry()
			if err != nil {
				return nil, err
			}
			found = append(found, e)
		}
		if got.Size <= 0 {
			got.Size = pageSize
		}
		if len(got.Items) == 0 || n*got.Size >= got.Total {
			return found, nil
		}
	}
	return nil, &Error{Kind: Malformed, Detail: "the user has more agents of this " + filter + " than are read"}
}

// draftBody is the content of a draft.
type draftBody struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	ACS         json.RawMessage `json:"acs"`
}

// EAB is the credential to bind an account at the certificate authority of a registry to an AIC. It is spent by its
// first use.
type EAB struct {
	KeyID   string    `json:"keyId"`
	MACKey  string    `json:"macKey"` // base64url of 32 bytes; secret
	AIC     string    `json:"aic"`
	Expires time.Time `json:"expiresAt"`
}

// EAB gets a credential for an AIC of the user.
func (a *Account) EAB(ctx context.Context, aic string) (*EAB, error) {
	got := new(EAB)
	err := a.do(ctx, call{method: http.MethodPost, path: "/acps-atr-v2/eab/" + url.PathEscape(aic)}, got)
	switch {
	case err != nil:
		return nil, err
	case got.KeyID == "" || got.MACKey == "" || !strings.EqualFold(got.AIC, aic):
		return nil, &Error{Kind: Malformed, Detail: "the credential lacks its key, or is of another AIC"}
	}
	return got, nil
}
