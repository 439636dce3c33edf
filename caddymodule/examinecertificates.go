// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
)

// certificates says how the certificates stand that the authority gives, as the storage has them, and has connections
// of this examination show them. The authority is not asked.
func (e *examination) certificates(ctx caddy.Context, a *App) {
	if a.Certificates == nil {
		return
	}
	keepers := make(map[string]*agentca.Keeper)
	for _, g := range a.members {
		aic, err := identity.ParseAIC(g.AIC)
		if err != nil || keepers[string(aic)] != nil || !a.Certificates.obtains(string(aic)) {
			continue
		}
		k := agentca.New(agentca.Config{AIC: string(aic), Client: a.Certificates.client, Storage: a.Certificates.storage,
			Log: slog.New(slog.DiscardHandler)})
		if err := k.Load(ctx); err != nil {
			e.add(doctor.CheckCertificate, doctor.Broken, k.AIC, fmt.Sprintf("its certificates cannot be read: %v; correct "+
				"storage, and who may read it", err))
			continue
		}
		keepers[k.AIC] = k
		e.obtained(ctx, a, k, time.Now())
	}
	a.Certificates.keepers.Store(&keepers)
}

// obtained is certificates for one agent.
func (e *examination) obtained(ctx context.Context, a *App, k *agentca.Keeper, now time.Time) {
	status := k.Status()
	say := func(s doctor.Status, format string, args ...any) {
		e.add(doctor.CheckCertificate, s, k.AIC, fmt.Sprintf(format, args...))
	}
	for _, held := range status.Certificates {
		switch ends := held.Pair.Leaf.NotAfter; {
		case now.After(ends):
			say(doctor.Broken, "its certificate (%s) has ended on %s; see caddy aip certificates list", held.Usage,
				ends.Local().Format(time.RFC3339))
		default:
			say(doctor.OK, "its certificate (%s) is valid until %s", held.Usage, ends.Local().Format(time.RFC3339))
		}
	}
	switch {
	case status.Retired:
		say(doctor.Warning, "its certificates were retired; run caddy aip certificates renew %s if they are needed", k.AIC)
		return
	case len(status.Certificates) == 0:
		say(doctor.Warning, "it has no certificate yet; the gateway orders one when it runs")
	}
	if status.Account != "" || a.account != nil || k.IsV1() {
		return // no credential is needed, or the registry gives one
	}
	if _, err := a.Certificates.credential(ctx, k.AIC, nil); err != nil {
		say(doctor.Broken, "there is no account at the authority, and no credential for one: %v; get one (EAB) from the "+
			"registry, and name it by eab in certificates, or set the option registry", err)
	}
}
