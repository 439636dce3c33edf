// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// listRules answers with the rules and quotas of the configuration that is in force, and what they have decided.
func listRules(o *openStore, r *http.Request) (any, error) {
	only, list := r.URL.Query().Get("partner"), adminapi.RuleList{Rules: []adminapi.Rule{}}
	seen := make(map[string]bool)
	for _, p := range o.Partners() {
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
func listQuotas(o *openStore, r *http.Request) (any, error) {
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
	uses, next, err := o.Book.Uses(r.Context(), f)
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
