// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/console"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

func consoleCommand() *cobra.Command {
	var admin adminFlags
	var listen string
	var allow []string
	cmd := &cobra.Command{
		Use:   "console [--listen <address>] [--allow <permission>,...]",
		Short: "Serves the console of a running gateway at a local port",
		Long: `
Serves the console of a running gateway at a local port, for a browser on this machine,
until Ctrl-C. It needs no site: it uses Caddy's admin API. The console only reads,
unless --allow has some of cancel, fail, replay, endpoints, leave and try. All users of
this machine can open it.
`,
		Example: `  $ caddy aip console
  $ caddy aip console --listen 127.0.0.1:9180 --allow cancel,replay`,
		Args: cobra.NoArgs,
	}
	admin.add(cmd.Flags())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "the loopback address to listen on; port 0 chooses one")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "what the console may change; may be repeated; default: nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		permissions, err := console.ParsePermissions(allow)
		if err != nil {
			return err
		}
		api, err := admin.proxy()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
		if err != nil {
			return err
		}
		if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
			return errors.Join(l.Close(), fmt.Errorf("--listen is %s, but must be a loopback address such as 127.0.0.1:9180; "+
				"for other machines, serve the console by aip_console on a site that you protect", listen))
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The console is at http://%s%s\n", l.Addr(), console.Path)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		return serveConsole(ctx, l, &console.Handler{API: api, Allow: permissions})
	}
	return cmd
}

// proxy returns a handler to forward requests to the admin API, as those of a command.
func (f *adminFlags) proxy() (http.Handler, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, err
	}
	to, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, err
	}
	if to.PortRangeSize() > 1 || to.IsFdNetwork() {
		return nil, fmt.Errorf("the address %s of the admin API cannot be connected to", address)
	}
	host := "127.0.0.1" // of a Unix socket
	if to.IsUnixNetwork() {
		to.Host, _, _ = strings.Cut(to.Host, "|") // the permissions of the socket
	} else {
		host = to.JoinHostPort(0)
	}
	target := &url.URL{Scheme: "http", Host: host}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			accept, content := r.In.Header["Accept"], r.In.Header["Content-Type"]
			last := r.In.Header["Last-Event-Id"]
			r.Out.Header = http.Header{"Accept": accept, "Content-Type": content, "Last-Event-Id": last}
			r.SetURL(target)
			if !to.IsUnixNetwork() {
				r.Out.Header.Set("Origin", target.String())
			}
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, to.Network, to.JoinHostPort(0))
			},
			IdleConnTimeout: time.Minute,
		},
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Access-Control-Allow-Origin") // Caddy adds it for an Origin
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			adminapi.Refuse(w, http.StatusBadGateway,
				fmt.Sprintf("the admin API at %s does not answer; is the gateway running?", address))
		},
	}, nil
}

// serveConsole serves the console on l until ctx is done, and all requests have ended. A browser led here by the name
// of another host is refused: a page of that host could read the loaded content.
func serveConsole(ctx context.Context, l net.Listener, handler *console.Handler) error {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	hosts := []string{l.Addr().String(), "localhost:" + port}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // so streams end
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !slices.Contains(hosts, r.Host):
				http.Error(w, "open the console by the address that it has printed", http.StatusMisdirectedRequest)
			case handler.Serves(r.URL.Path):
				handler.ServeHTTP(w, r)
			default:
				http.Redirect(w, r, console.Path, http.StatusSeeOther)
			}
		}),
	}
	return serve(ctx, l, server, func() error { return nil })
}
