// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"reflect"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddypki"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
)

// TrustNoLocalCA keeps the root of Caddy's own CA out of the system's trust store where that CA issues nothing. Caddy
// makes it for each site with a name such as localhost, or an IP address, also where get_certificate aip alone says
// what the site shows. It is called while handlers are provisioned: by then all such sites are known, and no app has
// started.
func (h *Host) TrustNoLocalCA(ctx caddy.Context) error {
	if len(h.Getters()) == 0 || isConfigured(ctx, "pki") {
		return nil
	}
	made, err := ctx.AppIfConfigured("pki")
	if err != nil { // Caddy has made none
		return nil
	}
	ca := made.(*caddypki.PKI).CAs[caddypki.DefaultCAID]
	if ca == nil || ca.InstallTrust != nil {
		return nil
	}
	app, err := ctx.App("tls")
	if err != nil {
		return err
	}
	if automation := app.(*caddytls.TLS).Automation; automation == nil ||
		slices.ContainsFunc(automation.Policies, issuesLocally) {
		return nil
	}
	ca.InstallTrust = new(bool)
	return nil
}

// issuesLocally reports whether certificates of a policy come from a CA of Caddy's own.
func issuesLocally(p *caddytls.AutomationPolicy) bool {
	return slices.ContainsFunc(p.Issuers, func(i certmagic.Issuer) bool {
		_, is := i.(*caddytls.InternalIssuer)
		return is
	}) && !slices.ContainsFunc(p.Managers, func(m certmagic.Manager) bool {
		_, is := m.(*CertificateGetter)
		return is
	})
}

// isConfigured reports whether an app stands in the configuration. Caddy tells modules nothing of that once the app is
// there, so it is read from what a context has of the configuration.
func isConfigured(ctx caddy.Context, app string) bool {
	config := reflect.ValueOf(ctx).FieldByName("cfg")
	if config.Kind() != reflect.Pointer || config.IsNil() {
		return false
	}
	apps := config.Elem().FieldByName("AppsRaw")
	return apps.IsValid() && apps.MapIndex(reflect.ValueOf(app)).IsValid()
}
