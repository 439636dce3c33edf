// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// A Partner gets its AIC while the process runs, but everything that is made of a configuration has its AIC from the
// beginning: its tasks, certificates, groups and cards. So the configuration is loaded again, by Caddy itself.

// maxConfig is the largest configuration that is loaded again, in bytes, as Caddy's admin API takes it.
const maxConfig = 100 << 20

// adminAPI is how the admin API of a configuration is asked.
type adminAPI struct {
	at   caddy.NetworkAddress // the zero value if the API is off
	host string               // that requests name
	from string               // the origin that they must name; empty for none
}

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
