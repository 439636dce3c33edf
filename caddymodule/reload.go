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
	"reflect"
	"sync"

	"github.com/caddyserver/caddy/v2"
)

// A Partner gets its AIC while the process runs, but everything that is made of a configuration has its AIC from the
// beginning: its tasks, certificates, groups and cards. So the configuration is loaded again, by Caddy itself.

// maxConfig is the largest configuration that is loaded again, in bytes, as Caddy's admin API takes it.
const maxConfig = 100 << 20

// adminAddress returns where the admin API of a configuration listens. Caddy tells modules nothing of it, so it is read
// from what a context has of the configuration. It is the zero value if the API is off.
func adminAddress(ctx caddy.Context) (at caddy.NetworkAddress, err error) {
	listen := caddy.DefaultAdminListen
	config := reflect.ValueOf(ctx).FieldByName("cfg")
	if config.Kind() == reflect.Pointer && !config.IsNil() {
		if admin := config.Elem().FieldByName("Admin"); admin.IsValid() && !admin.IsNil() {
			if admin.Elem().FieldByName("Disabled").Bool() {
				return at, nil
			}
			listen = cmp.Or(admin.Elem().FieldByName("Listen").String(), listen)
		}
	}
	if listen, err = caddy.NewReplacer().ReplaceOrErr(listen, true, true); err != nil {
		return at, err
	}
	return caddy.ParseNetworkAddress(listen)
}

// canReload reports whether the configuration can be loaded again.
func (a *App) canReload() bool { return a.admin.Network != "" }

// reload has Caddy load the configuration again that it runs, although it is the same. It does nothing where that has
// changed meanwhile, since then it was loaded. ctx ends while a configuration replaces this one, which goes on.
func reload(ctx context.Context, admin caddy.NetworkAddress) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, admin.Network, admin.JoinHostPort(0))
		}}}
	host := admin.JoinHostPort(0)
	if admin.IsUnixNetwork() {
		host = "localhost"
	}
	ask := func(method string, body []byte, header http.Header) (*http.Response, []byte, error) {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+host+"/config/", bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		r.Header = header
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

// reloaded are the AICs for which the configuration was loaded again: once in a process for each, whatever comes of it.
var reloaded sync.Map

// useAIC has the configuration loaded again, so that the Partner, which has no AIC yet, has the one that the registry
// has assigned to it.
func (g *Gateway) useAIC(ctx context.Context, aic string) {
	if _, before := reloaded.LoadOrStore(aic, true); before {
		return
	}
	g.log.Info("the registry has assigned an AIC: the configuration is loaded again, so that it is used", "aic", aic)
	if err := reload(ctx, g.app.admin); err != nil && ctx.Err() == nil {
		g.log.Error("the configuration could not be loaded again, so that the AIC is used from the next reload on",
			"aic", aic, "error", err)
	}
}
