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
	Ontology  string    `json:"ontology,omitempty"` // the AIC of the ontology that it is an entity of
	Submitted time.Time `json:"submitted,omitzero"`
	Processed time.Time `json:"processed,omitzero"`
}

// Registration is what the gateway knows of the registration of a Partner.
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

// RegistryLogin is where a person has to log in; without a URL the provider has not asked for it yet.
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

// ofRegistration are the flags of commands about a registration.
var ofRegistration = []Flag{{"partner", "of this Partner: its name, its AIC, or its public URL", false}}

// registrationRoutes are the routes of registrations, and their commands.
var registrationRoutes = []Route{
	{
		Path: Registrations, Method: "GET, POST", Query: []string{"partner"},
		Commands: []Command{{
			Name:  "acs status",
			Args:  "[--partner <url>]",
			Short: "Shows how far the registration of a Partner is",
			Long: `
Shows how far the registration of the Partners is whose AIC the registry assigns. It asks
the registry, by way of the running gateway.
`,
			Example: `  $ caddy aip acs status`,
			Flags:   ofRegistration,
		}, {
			Name:  "acs register",
			Args:  "[--partner <url>] [--new-version] [--resubmit] [--no-wait]",
			Short: "Registers a Partner, and waits for the decision of a person of the registry",
			Long: `
Registers a Partner of a running gateway by the ACS that it serves: looks for it at the
registry by its name and version, drafts it if it is not there, submits it, and waits
until a person of the registry has decided. That may take hours: it may be interrupted,
and the same command goes on where it was. The gateway asks the registry meanwhile, also
after a restart. Once it is approved, the configuration is loaded again, so that the
Partner uses its AIC.

With the option ontology of registry, it is registered as an entity of that ontology,
about which no person decides.

An ACS that is approved can never change. Another content is a new version, which gets
another AIC: --new-version allows it, and what depends on the old AIC is printed.

Exit status: 0 it is approved, or with --no-wait submitted; 1 it is not.
`,
			Example: `  $ caddy aip acs register
  $ caddy aip acs register --new-version`,
			Flags: ofRegistration,
		}},
	},
	{
		Path: Withdraw, Method: "POST",
		Commands: []Command{{
			Name:  "acs withdraw",
			Args:  "[--partner <url>] [--delete [--aic <aic>]]",
			Short: "Takes a registration back",
			Long: `
Takes back what waits for the decision of a person of the registry: it becomes a draft,
which can be changed and registered again. --delete deletes a draft, or what was rejected.
With --aic it deletes the version that has this AIC, for ever: its certificates are
revoked, and discovery servers do not list the Partner any more.
`,
			Example: `  $ caddy aip acs withdraw
  $ caddy aip acs withdraw --delete --aic 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
			Flags: append([]Flag{{"aic", "with --delete: the AIC of the version that is deleted", false}},
				ofRegistration...),
		}},
	},
}
