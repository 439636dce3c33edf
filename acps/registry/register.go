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
	"time"

	"github.com/aip-gateway/aip-gateway/internal/endpoint"
)

// Order is the content of a registration.
type Order struct {
	Partner string          // the Partner's URL, with the placeholder of its AIC
	ACS     json.RawMessage // without an AIC
	// Differs reports whether a registered ACS has another content, but for the Partner's mount point in place of its
	// endpoint, as ACS had it before.
	Differs func(registered json.RawMessage) (bool, error)
	// NewVersion allows a version beside a registered one. It gets another AIC.
	NewVersion bool
	// Resubmit submits a rejected version again, although it is unchanged.
	Resubmit bool
}

// The obstacles to a registration. Nothing was changed at the registry then.
var (
	// ErrNewVersion: another version is registered, and the order does not allow a new one.
	ErrNewVersion = errors.New("another version of the agent is registered")
	// ErrUnfinished: another version has no AIC yet.
	ErrUnfinished = errors.New("another version of the agent is not registered yet")
	// ErrChanged: this version is registered with another content, never to be changed.
	ErrChanged = errors.New("this version of the agent is registered with another content, which cannot be changed")
	// ErrPendingOther: this version waits for its approval with another content.
	ErrPendingOther = errors.New("this version of the agent waits for its approval with another content")
	// ErrRejected: this version was rejected, and nothing has changed since.
	ErrRejected = errors.New("the registry has rejected this version of the agent")
	// ErrTaken: an agent at another address has this name and this version.
	ErrTaken = errors.New("an agent at another address is registered with this name and version")
	// ErrNothing: nothing is registered for the operation to act on.
	ErrNothing = errors.New("nothing is registered")
)

// Register brings the registration of a Partner as far as it goes without a person of the registry. It first looks for
// existing versions, so the same order may be given again at any time, also after a crash or a lost answer: one version
// is never drafted twice. The record has its progress, also beside an error.
func (a *Account) Register(ctx context.Context, o Order) (*Record, error) {
	var draft draftBody
	switch err := json.Unmarshal(o.ACS, &draft); {
	case err != nil:
		return nil, fmt.Errorf("the ACS cannot be read: %w", err)
	case draft.Name == "" || draft.Version == "":
		return nil, errors.New("the ACS has no name or no version")
	}
	draft.ACS = o.ACS
	return a.work(ctx, o.Partner, func(r *Record) error {
		there, err := a.look(ctx, r, draft)
		if err != nil {
			return err
		}
		if e := there.taken; e != nil {
			return fmt.Errorf("%w: %s %s at %s", ErrTaken, e.Name, e.Version, printable(e.Endpoint()))
		}
		e := there.same
		if err := there.check(r, &o); err != nil {
			return err
		}
		if e == nil {
			if e, err = a.draft(ctx, r, draft); err != nil {
				return err
			}
		}
		r.take(e)
		return a.submit(ctx, r, e, &o, draft)
	})
}

// found has the user's versions of an agent.
type found struct {
	same       *Entry // the version to be registered; nil for none
	other      *Entry // another one with an AIC, the Partner's if it has one; nil for none
	unfinished *Entry // another one without an AIC yet; nil for none
	taken      *Entry // that version of an agent at an address other than the Partner's; nil for none
}

// isOf reports whether a version is one of the Partner of a record: it is recorded, or has the address of the draft.
// Several Partners of one user may have the same name.
func (e *Entry) isOf(r *Record, draft *draftBody) bool {
	for _, known := range []*Entry{r.Current, r.Next} {
		if known != nil && known.ID == e.ID {
			return true
		}
	}
	return endpoint.Same(e.Endpoint(), e.endpointOf(draft.ACS))
}

// moved reports whether a version has the mount point of its Partner in place of the endpoint in an ACS.
func (e *Entry) moved(acs json.RawMessage) bool {
	has, want := e.Endpoint(), e.endpointOf(acs)
	return has != want && endpoint.Same(has, want)
}

// endpointOf returns the URL of the first endpoint in an ACS, as a version has it: from its approval on with its AIC.
func (e *Entry) endpointOf(acs json.RawMessage) string {
	want := endpointIn(acs)
	if has := e.Endpoint(); e.AIC == "" || strings.Contains(has, placeholder) {
		return want
	}
	return strings.ReplaceAll(want, placeholder, e.AIC)
}

// placeholder stands for the AIC in an ACS without one yet.
const placeholder = "{AIC}"

// Endpoint returns the URL of the first endpoint in the ACS; empty for none.
func (e *Entry) Endpoint() string { return endpointIn(e.ACS) }

// endpointIn returns the URL of the first endpoint in an ACS; empty for none.
func endpointIn(acs json.RawMessage) string {
	var has struct {
		EndPoints []struct {
			URL string `json:"url"`
		} `json:"endPoints"`
	}
	if json.Unmarshal(acs, &has) != nil || len(has.EndPoints) == 0 {
		return ""
	}
	return has.EndPoints[0].URL
}

func (a *Account) look(ctx context.Context, r *Record, draft draftBody) (f found, err error) {
	all, err := a.find(ctx, draft.Name)
	if err != nil {
		return f, err
	}
	for _, e := range all {
		switch mine := e.isOf(r, &draft); {
		case !mine && e.Version == draft.Version:
			f.taken = e
		case !mine:
		case e.Version == draft.Version:
			f.same = e
		case e.AIC == "":
			f.unfinished = e
		case f.other == nil || e.Processed.After(f.other.Processed):
			f.other = e
		}
	}
	another := func(e *Entry) bool { return e.Name != draft.Name || e.Version != draft.Version }
	if c := r.Current; c != nil && c.Status != Deleted && another(c) {
		f.other = c // also under another name
	}
	if n := r.Next; n != nil && n.Name != draft.Name { // else it was found
		if n, err = a.get(ctx, n.ID); Is(err, NotFound) {
			return f, nil
		} else if err != nil {
			return f, err
		} else if n.AIC == "" && n.Status != Deleted {
			f.unfinished = n
		}
	}
	return f, nil
}

// check refuses an order leading to a second registration without asking for one.
func (f *found) check(r *Record, o *Order) error {
	is := func(e *Entry) bool { return e != nil && e.ID == f.same.ID }
	goesOn := f.same != nil && (f.same.Status == Pending || is(r.Current) || is(r.Next) && f.same.AIC != "")
	switch {
	case goesOn:
		return nil
	case f.unfinished != nil:
		if r.Next == nil {
			r.take(f.unfinished) // the record was lost
		}
		return fmt.Errorf("%w: %s %s is %s", ErrUnfinished, f.unfinished.Name, f.unfinished.Version, f.unfinished.Status)
	case o.NewVersion || f.other == nil || f.same != nil && f.same.AIC != "" && r.Current == nil:
		return nil
	}
	if r.Current == nil {
		r.take(f.other) // the record was lost
	}
	return fmt.Errorf("%w: %s, with the AIC %s", ErrNewVersion, f.other.Version, f.other.AIC)
}

// draft makes a draft. If one is there already, since an answer was lost or another gateway was faster, it returns this
// one.
func (a *Account) draft(ctx context.Context, r *Record, draft draftBody) (*Entry, error) {
	e, err := a.change(ctx, http.MethodPost, "", draft)
	if !Is(err, Conflict) {
		return e, err
	}
	all, findErr := a.find(ctx, draft.Name)
	if findErr != nil {
		return nil, findErr
	}
	for _, e := range all {
		if e.Version == draft.Version && e.isOf(r, &draft) {
			return e, nil
		}
	}
	return nil, err
}

// submit brings a version from its draft to the decision of a person.
func (a *Account) submit(ctx context.Context, r *Record, e *Entry, o *Order, draft draftBody) error {
	differs, err := o.Differs(e.ACS)
	if err != nil {
		return err
	}
	switch {
	case e.Status == Pending && differs:
		return ErrPendingOther
	case e.Status == Pending:
		return nil
	case e.Status == Rejected && !differs && !e.moved(draft.ACS) && !o.Resubmit:
		return ErrRejected
	case e.Status != Draft && e.Status != Rejected && differs:
		return ErrChanged
	case e.Status != Draft && e.Status != Rejected:
		return nil // it is decided
	}
	if differs || e.moved(draft.ACS) {
		if e, err = a.change(ctx, http.MethodPut, "/"+url.PathEscape(e.ID), draft); err != nil {
			return err
		}
		r.take(e)
	}
	submitted, err := a.change(ctx, http.MethodPost, "/"+url.PathEscape(e.ID)+"/submit", nil)
	if Is(err, Refused) || Is(err, Conflict) { // it may be submitted already
		if now, getErr := a.get(ctx, e.ID); getErr == nil && now.Status != Draft && now.Status != Rejected {
			submitted, err = now, nil
		}
	}
	if err != nil {
		return err
	}
	r.take(submitted)
	return nil
}

// Poll asks the registry for the outcome of a registration, unless any gateway has asked within a time.
func (a *Account) Poll(ctx context.Context, partner string, within time.Duration) (*Record, error) {
	return a.work(ctx, partner, func(r *Record) error {
		if time.Since(r.Asked) < within {
			return nil
		}
		err := a.refresh(ctx, r)
		r.Asked, r.Trouble = time.Now(), ""
		if err != nil && ctx.Err() == nil {
			r.Trouble = err.Error()
		}
		return err
	})
}

// refresh gets the versions of a record anew.
func (a *Account) refresh(ctx context.Context, r *Record) error {
	for _, e := range []*Entry{r.Current, r.Next} {
		if e == nil || e.Status == Deleted {
			continue
		}
		now, err := a.get(ctx, e.ID)
		if Is(err, NotFound) {
			gone := *e
			gone.Status, now, err = Deleted, &gone, nil
		}
		if err != nil {
			return err
		}
		r.take(now)
	}
	return nil
}

// Withdraw takes back a version waiting for its approval; it becomes a draft again. With remove, a draft, a rejected
// version, or the version with an AIC, is deleted for ever. aic is the AIC meant by the caller, perhaps of an earlier
// version; empty for none.
func (a *Account) Withdraw(ctx context.Context, partner, aic string, remove bool) (*Record, error) {
	return a.work(ctx, partner, func(r *Record) error {
		if err := a.refresh(ctx, r); err != nil {
			return err
		}
		isMeant := func(one string) bool { return strings.EqualFold(one, aic) }
		former := slices.IndexFunc(r.Former, isMeant)
		e := r.Next
		switch {
		case aic == "":
		case former >= 0:
			var err error
			if e, err = a.findAIC(ctx, r.Former[former]); err != nil {
				return err
			}
			if e == nil { // it was deleted elsewhere
				r.Former = slices.Delete(r.Former, former, former+1)
			}
		case isMeant(r.AIC()):
			e = r.Current
		default:
			return fmt.Errorf("%w under the AIC %s", ErrNothing, aic)
		}
		if e == nil || e.Status == Deleted {
			return ErrNothing
		}
		path := "/" + url.PathEscape(e.ID)
		if e.Status == Pending {
			now, err := a.change(ctx, http.MethodPost, path+"/cancel", nil)
			if err != nil {
				return err
			}
			r.take(now)
		}
		if !remove {
			return nil
		}
		err := a.do(ctx, call{method: http.MethodDelete, path: agentsPath + path}, nil)
		if err != nil && !Is(err, NotFound) {
			return err
		}
		if former >= 0 {
			r.Former = slices.Delete(r.Former, former, former+1)
			return nil
		}
		gone := *e
		gone.Status = Deleted
		r.take(&gone)
		return nil
	})
}
