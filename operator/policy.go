// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/base64"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// listRules answers with the rules and quotas of the configuration that is in force, and what they have decided.
func listRules(a *Admin, r *http.Request) (any, error) {
	only, list := r.URL.Query().Get("partner"), adminapi.RuleList{Rules: []adminapi.Rule{}}
	seen := make(map[string]bool)
	for _, p := range a.Partners() {
		if p.Policy == nil || only != "" && only != p.Name {
			continue
		}
		for rule := range p.Policy.Rules() {
			one := adminapi.Rule{OfAgent: titleOf(p), Partner: p.Name, Name: rule.Name, Kind: rule.Kind, Tried: rule.Tried,
				Allowed: rule.Allowed, Denied: rule.Denied, DryRun: rule.DryRun}
			if key := one.Partner + "\x00" + one.Kind + "\x00" + one.Name; !seen[key] { // mounts of a Partner count together
				seen[key] = true
				list.Rules = append(list.Rules, one)
			}
		}
	}
	return list, nil
}

// listQuotas answers with what quotas have counted.
func listQuotas(a *Admin, r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := readLimit(q)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("after"))
	if err != nil {
		return nil, task.Errorf(task.InvalidParams, "after is not the next of a page")
	}
	f := policy.UseFilter{Quota: q.Get("quota"), Of: q.Get("of"), After: string(after), Limit: limit}
	uses, next, err := a.Book.Uses(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.QuotaPage{Quotas: make([]adminapi.QuotaUse, 0, len(uses)),
		Next: base64.RawURLEncoding.EncodeToString([]byte(next))}
	for _, u := range uses {
		page.Quotas = append(page.Quotas, adminapi.QuotaUse{Quota: u.Quota, Of: u.Of, Day: u.Day.In(time.UTC),
			Starts: u.Starts, Bytes: u.Bytes})
	}
	return page, nil
}

var allQuotas = paged(func(p *adminapi.QuotaPage) listFields[adminapi.QuotaUse] {
	return listFields[adminapi.QuotaUse]{&p.Quotas, &p.Missing, &p.Next}
})

// allRules answers with what the rules and quotas have decided at all gateways together.
func allRules(a *Admin, r *http.Request, q question) (any, error) {
	all, missing, err := askNodes[adminapi.RuleList](a, r, q)
	if err != nil {
		return nil, err
	}
	sum := adminapi.RuleList{Partial: adminapi.Partial{Missing: missing}, Rules: []adminapi.Rule{}}
	for _, one := range all {
		for _, rule := range one.page.Rules {
			i := slices.IndexFunc(sum.Rules, func(o adminapi.Rule) bool {
				return o.Partner == rule.Partner && o.Kind == rule.Kind && o.Name == rule.Name
			})
			if i < 0 {
				sum.Rules = append(sum.Rules, rule)
				continue
			}
			sum.Rules[i].Allowed += rule.Allowed
			sum.Rules[i].Denied += rule.Denied
			sum.Rules[i].DryRun += rule.DryRun
		}
	}
	return sum, nil
}
