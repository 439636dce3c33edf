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

// QuotaPage is a page of what quotas have counted.
type QuotaPage struct {
	Partial

	Quotas []QuotaUse `json:"quotas"`
	Next   string     `json:"next,omitempty"` // the parameter after of the next page; missing on the last one
}
