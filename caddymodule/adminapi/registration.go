// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// The routes of registrations.
const (
	Registrations = "/aip/registrations"          // GET: RegistrationList; POST RegistrationOrder: Registration
	Withdraw      = "/aip/registrations/withdraw" // POST Withdrawal: Registration
)

// RegisteredVersion is one version of a Partner at a registry.
type RegisteredVersion struct {
	ID        string    `json:"id"` // the registry's
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Status    string    `json:"status"` // draft, pending, rejected, approved, disabled or deleted
	Comments  string    `json:"comments,omitempty"`
	AIC       string    `json:"aic,omitempty"`
	Submitted time.Time `json:"submitted,omitzero"`
	Processed time.Time `json:"processed,omitzero"`
}

// Registration is what is known of the registration of a Partner.
type Registration struct {
	Partner  string             `json:"partner"`
	URL      string             `json:"url"` // the Partner's, by which it is registered
	Registry string             `json:"registry"`
	Used     string             `json:"used,omitempty"`    // the AIC that the Partner has in the running configuration
	Current  *RegisteredVersion `json:"current,omitempty"` // the one with the Partner's AIC
	Next     *RegisteredVersion `json:"next,omitempty"`    // the one that is to become the current one
	Former   []string           `json:"former,omitempty"`  // AICs of versions before
	Asked    time.Time          `json:"asked,omitzero"`    // when the registry was asked last
	Trouble  string             `json:"trouble,omitempty"` // why it has not answered then
	Login    *RegistryLogin     `json:"login,omitempty"`   // a person has to log in
	Problem  string             `json:"problem,omitempty"` // why it does not go on, and what to do
	Depends  []string           `json:"depends,omitempty"` // what depends on the AIC that a new version replaces
}

// RegistryLogin is where a person has to log in; without a URL nobody was asked yet.
type RegistryLogin struct {
	URL   string    `json:"url,omitempty"`
	Code  string    `json:"code,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// RegistrationList has the registrations of all Partners with an AIC of the registry.
type RegistrationList struct {
	Registrations []Registration `json:"registrations"`
}

// RegistrationOrder says what is to be registered. The Partner may be left out where there is one.
type RegistrationOrder struct {
	Partner    string `json:"partner,omitempty"`
	NewVersion bool   `json:"new_version,omitempty"` // beside a version that has an AIC
	Resubmit   bool   `json:"resubmit,omitempty"`    // what was rejected, although it is unchanged
}

// Withdrawal says what is taken back: what waits for its approval, which becomes a draft; with Delete, a version for
// ever, the one with an AIC only where that is named.
type Withdrawal struct {
	Partner string `json:"partner,omitempty"`
	AIC     string `json:"aic,omitempty"`
	Delete  bool   `json:"delete,omitempty"`
}
