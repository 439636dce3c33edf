// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Status is the status of an agent at a registry.
type Status string

// The statuses.
const (
	Draft    Status = "draft"    // it was never submitted, or its submission was withdrawn
	Pending  Status = "pending"  // a person has to decide
	Rejected Status = "rejected" // Comments have the reason
	Approved Status = "approved" // it has an AIC
	Disabled Status = "disabled" // by a person, after the approval
	Deleted  Status = "deleted"
)

// Entry is one version of an agent at a registry.
type Entry struct {
	ID        string          `json:"id"` // the registry's
	Name      string          `json:"name"`
	Version   string          `json:"version"`
	Status    Status          `json:"status"`
	Comments  string          `json:"comments,omitempty"` // of the deciding person
	AIC       string          `json:"aic,omitempty"`      // from the approval on
	Ontology  string          `json:"ontology,omitempty"` // the AIC; of an entity only
	ACS       json.RawMessage `json:"acs,omitempty"`      // as the registry has it
	Submitted time.Time       `json:"submitted,omitzero"`
	Processed time.Time       `json:"processed,omitzero"`
}

// Record is the kept form of a registration. The URL of the Partner, with the placeholder of its AIC, identifies it.
type Record struct {
	Registry string `json:"registry"` // its URL
	Partner  string `json:"partner"`  // the Partner's URL
	// Current is the version with the Partner's present AIC; nil before the first approval.
	Current *Entry `json:"current,omitempty"`
	// Next is the version to become the current one; nil for none.
	Next *Entry `json:"next,omitempty"`
	// Former are the AICs of versions before, the last one first.
	Former []string `json:"former,omitempty"`
	// Asked is the time of the last request to the registry, and Trouble the reason if it was not answered.
	Asked   time.Time `json:"asked,omitzero"`
	Trouble string    `json:"trouble,omitempty"`
}

// AIC returns the AIC of the Partner; empty before the first approval.
func (r *Record) AIC() string {
	if r == nil || r.Current == nil {
		return ""
	}
	return r.Current.AIC
}

// maxFormer is the most kept AICs of earlier versions.
const maxFormer = 32

// take puts the registry's form of a version into the record. An AIC is assigned for ever: an answer without it takes
// none away, and a version disabled before it got one does not become the current one.
func (r *Record) take(e *Entry) {
	r.Asked, r.Trouble = time.Now(), ""
	switch {
	case r.Current != nil && r.Current.ID == e.ID:
		e.AIC, e.Ontology = cmp.Or(e.AIC, r.Current.AIC), cmp.Or(e.Ontology, r.Current.Ontology)
		r.Current = e
	case e.AIC != "" && (e.Status == Approved || e.Status == Disabled):
		if old := r.AIC(); old != "" && old != e.AIC {
			r.Former = append([]string{old}, r.Former...)
			r.Former = r.Former[:min(len(r.Former), maxFormer)]
		}
		r.Current, r.Next = e, nil
	case e.Status == Deleted:
		r.Next = nil
	default:
		r.Next = e
	}
}

// recordKey is the key of the record of a Partner.
func (a *Account) recordKey(partner string) string {
	return a.folder + "/agent-" + digest(partner) + ".json"
}

// Record returns the record of the registration of a Partner, without asking the registry.
func (a *Account) Record(ctx context.Context, partner string) (*Record, error) {
	r, err := load[Record](ctx, a.storage, a.recordKey(partner))
	if err != nil {
		return nil, err
	}
	r.Registry, r.Partner = a.client.base, partner
	return &r, nil
}

// ErrNotStored: the registry's answer could not be stored, so others do not know it.
var ErrNotStored = errors.New("what the registry has answered cannot be stored")

// work changes the record of a Partner while no other gateway does. The knowledge of f is kept also if it fails.
func (a *Account) work(ctx context.Context, partner string, f func(*Record) error) (r *Record, err error) {
	key := a.recordKey(partner)
	err = locked(ctx, a.storage, key, func() error {
		var err error
		if r, err = a.Record(ctx, partner); err != nil {
			return err
		}
		failed := f(r)
		if err := store(context.WithoutCancel(ctx), a.storage, key, r); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: %w", ErrNotStored, err))
		}
		return failed
	})
	return r, err
}
