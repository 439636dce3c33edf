// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// The routes of policies and quotas.
const (
	PolicyRules = "/aip/policy" // GET: RuleList
	QuotaUses   = "/aip/quotas" // GET: QuotaPage
)

// Rule is a rule of a Partner's policy, or a quota, and what it has decided since the process began.
type Rule struct {
	OfAgent

	Partner string `json:"partner"`
	Name    string `json:"name"`
	Kind    string `json:"kind"` // allow, deny or quota
	Allowed uint64 `json:"allowed"`
	Denied  uint64 `json:"denied"`
	DryRun  uint64 `json:"dry_run"` // what would have been denied
	Tried   bool   `json:"tried,omitempty"`
}

// RuleList has the rules of all Partners, in the order in which they are asked, and then their quotas.
type RuleList struct {
	Partial

	Rules []Rule `json:"rules"`
}

// QuotaUse is what a quota has counted on a day.
type QuotaUse struct {
	Of      string `json:"of,omitempty"`      // a Leader, or a Partner; missing for all to whom the quota applies
	Gateway string `json:"gateway,omitempty"` // that counts it, of several

	Quota  string    `json:"quota"`
	Day    time.Time `json:"day"` // its beginning, in UTC
	Starts int64     `json:"starts"`
	Bytes  int64     `json:"bytes"`
}

// AtGateway returns the name of the gateway.
func (u QuotaUse) AtGateway() string { return u.Gateway }

// SetGateway sets the name of the gateway.
func (u *QuotaUse) SetGateway(name string) { u.Gateway = name }

// QuotaPage is a page of what quotas have counted.
type QuotaPage struct {
	Partial

	Quotas []QuotaUse `json:"quotas"`
	Next   string     `json:"next,omitempty"` // the parameter after of the next page; missing on the last one
}

// policyRoutes are the routes of policies and quotas, and their commands.
var policyRoutes = []Route{
	{
		Path: PolicyRules, Method: "GET", Console: MayRead, Query: []string{"partner"},
		Commands: []Command{{
			Name:  "policy list",
			Args:  "[--partner <name>]",
			Short: "Lists the rules and quotas of a running gateway, and what they have decided",
			Long: `
Lists the rules of the policies of a running gateway, in the order in which they are
asked, and its quotas. ALLOWED and DENIED are calls since the process began, and DRY RUN
those that would have been denied.
`,
			Example: `  $ caddy aip policy list`,
			Flags:   ofTask[:1],
		}},
	},
	{
		Path: QuotaUses, Method: "GET", Console: MayRead, Query: []string{"quota", "of", "after", "limit"},
		Commands: []Command{{
			Name:  "policy quotas",
			Args:  "[--quota <name>] [--of <leader>]",
			Short: "Lists what the quotas of a running gateway have counted",
			Long: `
Lists what the quotas of a running gateway have counted: tasks that were started, and
bytes that were sent, on a day of UTC, the last one with a call. OF is whose calls count
together; "-" for those of all to whom the quota applies.
`,
			Example: `  $ caddy aip policy quotas --quota fair`,
			Flags: []Flag{
				{"quota", "of the quota of this name", false},
				{"of", "of this Leader, or Partner", false},
			},
		}},
	},
}
