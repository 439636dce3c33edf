// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// registeredAIC in place of an AIC stands for the one that the registry has assigned.
const registeredAIC = "registered"

// checkRegistered checks the settings of a Partner whose AIC a registry assigns.
func (g *Gateway) checkRegistered() error {
	if g.AIC != registeredAIC {
		return nil
	}
	g.registered, g.AIC = true, ""
	switch {
	case g.PublicURL == "":
		return errors.New("aic registered needs public_url, at which the Partner is registered")
	case g.Card.ACS == acs.V0100:
		return errors.New("aic registered needs a registry of ACPs 2; leave acs out of card, or set it to 02.01 or 02.02")
	}
	conf.OrDefault(&g.Card.ACS, acs.V0201)
	return nil
}

// registration names the Partner at a registry: by its public URL, which is the same before it has an AIC.
func (g *Gateway) registration() string { return strings.TrimSuffix(g.PublicURL, "/") }

// findAIC sets the AIC that the registry has assigned to the Partner, if it has.
func (g *Gateway) findAIC(ctx context.Context, app *App) error {
	if !g.registered {
		return nil
	}
	if app.account == nil {
		return errors.New("aic registered needs a registry; set registry in the global option aip")
	}
	record, err := app.account.Record(ctx, g.registration())
	if err != nil {
		return fmt.Errorf("aic: which one is registered cannot be read: %w", err)
	}
	if record.AIC() == "" {
		return nil
	}
	aic, err := identity.ParseAIC(record.AIC())
	if err != nil {
		return fmt.Errorf("aic: the registry has assigned %q: %w", record.AIC(), err)
	}
	g.AIC = string(aic)
	return nil
}

// checkCard checks the settings of cards together with the others.
func (g *Gateway) checkCard() error {
	if g.Card.Registered != "" && g.PublicURL == "" {
		return errors.New("card: registered needs public_url, without which the URL in the ACS is that of each request")
	}
	return g.Card.Check()
}

// cards returns the settings of the Partner's cards, with where the ACS is registered.
func (g *Gateway) cards() (gateway.Cards, error) {
	cards, err := g.Card.Cards()
	account := g.app.account
	if err == nil && cards.Registered == nil && account != nil && g.PublicURL != "" {
		switch {
		case g.registered:
			cards.Registered = func(ctx context.Context) ([]byte, error) {
				record, err := account.Record(ctx, g.registration())
				if err != nil || record.Current == nil || record.Current.Ontology != "" { // an entity's is not its own
					return nil, err
				}
				return record.Current.ACS, nil
			}
		case strings.Contains(g.AIC, "."): // the registry has no others
			cards.Registered = func(ctx context.Context) ([]byte, error) { return account.Client().ACS(ctx, g.AIC) }
		}
	}
	g.compared, cards.Groups = cards.Registered != nil, g.Group != nil
	if g.Group != nil && g.Group.inbox != nil {
		cards.Inbox = g.Group.inbox.URL()
	}
	return cards, err
}

// order returns what is to be registered of a Partner. It may wait for the agent.
func (g *Gateway) order(ctx context.Context) (o registry.Order, err error) {
	body, mistakes, err := g.gateway.DraftACS(ctx, g.registration())
	if err != nil {
		return o, fmt.Errorf("the ACS cannot be made: %w", err)
	}
	if len(mistakes) > 0 {
		texts := make([]string, len(mistakes))
		for i, m := range mistakes {
			texts[i] = m.String()
		}
		return o, fmt.Errorf("the registry would refuse the ACS: %s", strings.Join(texts, "; "))
	}
	return registry.Order{Partner: g.registration(), ACS: body, Differs: func(registered json.RawMessage) (bool, error) {
		if len(registered) == 0 {
			return true, nil
		}
		found, err := acs.Diff(body, registered)
		return slices.ContainsFunc(found, func(d acs.Difference) bool { return !d.AtMount() }), err
	}}, nil
}

// register registers the Partner, as an agent or, with an ontology, as an entity of it. The record may be there beside
// an error; without it nothing was sent.
func (g *Gateway) register(ctx context.Context, order *adminapi.RegistrationOrder) (*registry.Record, error) {
	what, err := g.order(ctx)
	if err != nil {
		return nil, err
	}
	o := g.app.Registry.Ontology
	if o == nil {
		what.NewVersion, what.Resubmit = order.NewVersion, order.Resubmit
		return g.app.account.Register(ctx, what)
	}
	aic, at, err := o.Open(g.app.Registry)
	if err != nil {
		return nil, task.Errorf(task.UnsupportedOperation, "%v", err)
	}
	defer at.Close()
	return g.app.account.RegisterEntity(ctx, registry.Entity{Partner: what.Partner, ACS: what.ACS, Ontology: aic, At: at,
		NewVersion: order.NewVersion})
}

// followRegistrations asks the registry what has become of submissions, until the configuration ends.
func (a *App) followRegistrations() {
	seen := make(map[string]bool)
	for _, g := range a.members {
		if g.registered && !seen[g.registration()] { // mounts of a Partner may share a URL
			seen[g.registration()] = true
			a.configuration.Go(func(ctx context.Context) { g.followRegistration(ctx) })
		}
	}
}

// followRegistration asks what has become of the submission of a Partner while one waits for a person.
func (g *Gateway) followRegistration(ctx context.Context) {
	every := time.Duration(g.app.Registry.Poll)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var before registry.Record
	for begun := false; ; begun = true {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(every)
		now, err := g.app.account.Record(ctx, g.registration())
		if err == nil && now.Next != nil && now.Next.Status == registry.Pending {
			now, err = g.app.account.Poll(ctx, g.registration(), every/2)
		}
		switch {
		case ctx.Err() != nil:
			return
		case now == nil || errors.Is(err, registry.ErrNotStored): // a reload would not find it
			g.log.Warn("what is registered cannot be read or stored", "error", err)
		default:
			g.reportRegistration(&before, now, !begun)
			before = *now
			if aic := now.AIC(); g.isUsedAtOnce(aic) {
				g.useAIC(ctx, aic)
			}
		}
	}
}

// isUsedAtOnce reports whether the configuration is loaded again for an AIC that the registry has assigned. That of
// a new version needs other certificates: where the gateway does not obtain them, an operator says when they are there.
func (g *Gateway) isUsedAtOnce(aic string) bool {
	return aic != "" && aic != g.AIC && g.app.canReload() && (g.AIC == "" || g.app.Certificates.Obtains(aic))
}

// reportRegistration logs what has become of a registration, if that is something else than before.
func (g *Gateway) reportRegistration(before, now *registry.Record, first bool) {
	log := g.log
	if now.Trouble != "" && now.Trouble != before.Trouble {
		log.Warn("the registry cannot be asked about the registration", "error", now.Trouble)
	}
	if next := now.Next; next != nil && (before.Next == nil || before.Next.Status != next.Status) {
		switch next.Status {
		case registry.Pending:
			log.Info("the registration waits for a person of the registry", "version", next.Version)
		case registry.Rejected:
			// What to do: correct it, and register it again.
			log.Warn("the registry has rejected the registration", "version", next.Version, "comments", next.Comments)
		}
	}
	switch {
	case g.isUsedAtOnce(now.AIC()): // see useAIC
	case now.AIC() != "" && now.AIC() != g.AIC && now.AIC() != before.AIC() && g.app.canReload():
		log.Warn("the registry has assigned an AIC: get certificates for it, and run caddy reload --force",
			"aic", now.AIC(), "used", g.AIC)
	case now.AIC() != "" && now.AIC() != g.AIC && now.AIC() != before.AIC():
		log.Warn("the registry has assigned an AIC, which is used when Caddy is started again: its admin API is off",
			"aic", now.AIC(), "used", cmp.Or(g.AIC, "none"))
	case first && g.entityAtMount(now):
		log.Warn("the Partner is registered with its mount point as its endpoint", "error", gateway.ErrAtMount)
	case first && now.Current == nil && now.Next == nil:
		log.Warn("the Partner is not registered, and has no AIC; run caddy aip acs register")
	}
}

// entityAtMount reports whether a Partner is an entity that is registered with its mount point as its endpoint. The ACS
// of an entity is not its own, and is not compared.
func (g *Gateway) entityAtMount(r *registry.Record) bool {
	return r.Current != nil && r.Current.Ontology != "" && r.Current.Endpoint() == g.registration()
}

// A Partner gets its AIC while the process runs, but everything that is made of a configuration has its AIC from the
// beginning: its tasks, certificates, groups and cards. So the configuration is loaded again, by Caddy itself.

// maxConfig is the largest configuration that is loaded again, in bytes, as Caddy's admin API takes it.
const maxConfig = 100 << 20

// adminOf returns the admin API of a configuration. Caddy tells modules nothing of it, so it is read from what a
// context has of the configuration.
func adminOf(ctx caddy.Context) (api adminAPI, err error) {
	listen := caddy.DefaultAdminListen
	var origins []string
	enforced := false
	config := reflect.ValueOf(ctx).FieldByName("cfg")
	if config.Kind() == reflect.Pointer && !config.IsNil() {
		if admin := config.Elem().FieldByName("Admin"); admin.IsValid() && !admin.IsNil() {
			if admin.Elem().FieldByName("Disabled").Bool() {
				return api, nil
			}
			listen = cmp.Or(admin.Elem().FieldByName("Listen").String(), listen)
			enforced = admin.Elem().FieldByName("EnforceOrigin").Bool()
			for _, origin := range admin.Elem().FieldByName("Origins").Seq2() {
				origins = append(origins, origin.String())
			}
		}
	}
	if listen, err = caddy.NewReplacer().ReplaceOrErr(listen, true, true); err != nil {
		return api, err
	}
	if api.at, err = caddy.ParseNetworkAddress(listen); err != nil {
		return api, err
	}
	ip, err := netip.ParseAddr(api.at.Host)
	switch {
	case api.at.IsUnixNetwork():
		api.at.Host, _, _ = strings.Cut(api.at.Host, "|") // the permissions of the socket
		api.host = "localhost"
	case err == nil && ip.IsLoopback(): // of which Caddy accepts no other name
		api.host = net.JoinHostPort("localhost", strconv.FormatUint(uint64(api.at.StartPort), 10))
	default:
		api.host = api.at.JoinHostPort(0)
	}
	origin := api.host
	if len(origins) > 0 { // which are the hosts that requests may name
		origin = origins[0]
	}
	if !strings.Contains(origin, "://") {
		origin = "http://" + origin
	}
	_, host, _ := strings.Cut(origin, "://")
	api.host, _, _ = strings.Cut(host, "/")
	if enforced {
		api.from = origin
	}
	return api, nil
}

// canReload reports whether the configuration can be loaded again.
func (a *App) canReload() bool { return a.admin.at.Network != "" }

// reload has Caddy load the configuration again that it runs, although it is the same. It does nothing where that has
// changed meanwhile, since then it was loaded. ctx ends while a configuration replaces this one, which goes on.
func reload(ctx context.Context, admin adminAPI) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, admin.at.Network, admin.at.JoinHostPort(0))
		}}}
	ask := func(method string, body []byte, header http.Header) (*http.Response, []byte, error) {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+admin.host+"/config/", bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		r.Header = header
		if admin.from != "" {
			r.Header.Set("Origin", admin.from)
		}
		res, err := client.Do(r)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = res.Body.Close() }()
		answer, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, maxConfig))
		if err == nil && res.StatusCode != http.StatusOK && res.StatusCode != http.StatusPreconditionFailed {
			err = fmt.Errorf("the admin API of Caddy answers %s %.500s", res.Status, bytes.TrimSpace(answer))
		}
		return res, answer, err
	}
	res, config, err := ask(http.MethodGet, nil, http.Header{})
	if err != nil {
		return err
	}
	_, _, err = ask(http.MethodPost, config, http.Header{"Content-Type": {"application/json"},
		"Cache-Control": {"must-revalidate"}, "If-Match": res.Header["Etag"]})
	return err
}

// useAIC has the configuration loaded again, so that the Partner has the AIC that the registry has assigned to it.
func (g *Gateway) useAIC(ctx context.Context, aic string) {
	if _, before := process.Reloaded.LoadOrStore(aic, true); before {
		return
	}
	g.log.Info("the registry has assigned an AIC: the configuration is loaded again, so that it is used", "aic", aic)
	if err := reload(ctx, g.app.admin); err != nil && ctx.Err() == nil {
		g.log.Error("the configuration could not be loaded again, so that the AIC is not used; run caddy reload --force",
			"aic", aic, "error", err)
	}
}
