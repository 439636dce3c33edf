// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// keepers returns what looks after the certificates of the Partners.
func (a *Admin) keepers() []*agentca.Keeper {
	if of := a.current().Keepers; of != nil {
		return of()
	}
	return nil
}

// listCertificates answers with the certificates that are obtained.
func listCertificates(a *Admin, _ *http.Request) (any, error) {
	list := adminapi.CertificateList{Certificates: []adminapi.Certificate{}}
	for _, k := range a.keepers() {
		list.Certificates = append(list.Certificates, shownCertificates(k.Status())...)
	}
	return list, nil
}

// shownCertificates returns the certificates of a Partner, or that it has none.
func shownCertificates(s agentca.Status) (all []adminapi.Certificate) {
	base := adminapi.Certificate{Partner: s.AIC, Account: s.Account, NextTime: s.Retry}
	if s.Err != nil {
		base.Error = s.Err.Error()
	}
	switch {
	case s.Retired:
		base.State = "retired"
	case s.NeedsEAB:
		base.State = "needs EAB"
	case s.Inactive:
		base.State = "inactive"
	}
	if len(s.Certificates) == 0 {
		base.State = cmp.Or(base.State, "missing")
		return []adminapi.Certificate{base}
	}
	for _, held := range s.Certificates {
		one, leaf := base, held.Pair.Leaf
		one.Usage = cmp.Or(string(held.Usage), "both")
		one.Serial, one.From, one.Until, one.Renewal = leaf.SerialNumber.Text(16), leaf.NotBefore.UTC(),
			leaf.NotAfter.UTC(), held.Renewal.UTC()
		one.Names = append(one.Names, leaf.DNSNames...)
		for _, ip := range leaf.IPAddresses {
			one.Names = append(one.Names, ip.String())
		}
		if held.Revoked {
			one.State = cmp.Or(one.State, "revoked")
		}
		one.State = cmp.Or(one.State, "valid")
		all = append(all, one)
	}
	return all
}

// onCertificates has the certificates of a Partner renewed, or retired.
func onCertificates(do func(*agentca.Keeper, context.Context) error) answer {
	return func(a *Admin, r *http.Request) (any, error) {
		var name adminapi.CertificatesOf
		if err := readBody(r, &name, `{"partner": "…"}`, &name.Partner); err != nil {
			return nil, err
		}
		aic, err := identity.ParseAIC(name.Partner)
		all := a.keepers()
		i := slices.IndexFunc(all, func(k *agentca.Keeper) bool { return k.AIC == string(aic) })
		if err != nil || i < 0 {
			return nil, task.Errorf(task.TaskNotFound, "no certificates are obtained for %q", name.Partner)
		}
		k := all[i]
		if err := do(k, r.Context()); err != nil {
			return nil, task.Errorf(task.StoreUnavailable, "%v", err)
		}
		return adminapi.CertificatesOf{Partner: k.AIC}, nil
	}
}
