// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// clockSkew is how far the clock may differ from an agent's.
const clockSkew = time.Minute

// agent says whether an agent can be reached, and answers in its dialect. served are the addresses at which the
// configuration itself serves.
func (e *examination) agent(ctx context.Context, m *Mount, served []string) {
	c := m.Agent.Config
	name := c.Dialect + " " + m.Agent.Name
	broken := func(err error) {
		if upstream.ReasonOf(err) == upstream.Unreachable && isServed(cmp.Or(c.HTTP.URL, c.AUN.URL), served) {
			e.add(CheckAgent, OK, name, "this configuration serves it, and is not running; "+
				"to examine the agent, run this again when it does")
			return
		}
		e.add(CheckAgent, Broken, name, Explained(err))
	}
	if c.Finder != nil {
		finding, end := context.WithTimeout(ctx, Timeout)
		found, err := c.Finder.Find(finding)
		end()
		if err != nil {
			broken(err)
			return
		}
		c.HTTP.URL, c.Dialect = found.URL, found.Dialect
	}
	if m.Agent.Wait != nil {
		e.add(CheckAgent, Warning, name, "it was not asked: "+m.Agent.Wait.Error())
		return
	}
	switch transport := m.Agent.Dialect.Transport; {
	case transport == gateway.Connecting:
		e.add(CheckAgent, OK, name, "it connects to the gateway, and was not looked for")
		return
	case transport == gateway.OverAUN && c.AUN.URL == "":
		e.add(CheckAgent, OK, name, "its URL is found out when it is needed, and it was not looked for")
		return
	case transport == gateway.OverAUN:
		if err := dialURL(ctx, c.AUN.URL, c.AUN.HTTP.Transport.(*http.Transport).TLSClientConfig); err != nil {
			broken(err)
			return
		}
		e.add(CheckAgent, OK, name, "it accepts connections")
		return
	case transport == gateway.OverHTTP:
		at, err := askTime(ctx, &c.HTTP)
		if err != nil {
			broken(err)
			return
		}
		if skew := time.Since(at).Round(time.Second); !at.IsZero() && skew.Abs() > clockSkew {
			e.add(CheckClock, Warning, name, fmt.Sprintf("the clock of this machine is %s %s that of the "+
				"agent; synchronise both with NTP", skew.Abs(), map[bool]string{true: "ahead of", false: "behind"}[skew > 0]))
		}
	}
	polled := m.Agent.Dialect.Polled()
	var err error
	if polled {
		err = m.Gateway.AskAgent(ctx)
	}
	verdict := translate.Unsure
	if err == nil || task.KindOf(err) == task.InvalidAgentResponse || task.KindOf(err) == task.MethodNotFound {
		var dialect, url string
		verdict, dialect, url = c.Examine(ctx, polled && err == nil)
		if dialect != "" {
			text := fmt.Sprintf("it does not speak %s at this URL, but %s", c.Dialect, dialect)
			if dialect == c.Dialect {
				text = fmt.Sprintf("its endpoint of %s is at another URL", dialect)
			}
			e.add(CheckAgent, Broken, name, fmt.Sprintf("%s; write agent %s %s", text, dialect, url))
			return
		}
	}
	switch {
	case err != nil:
		broken(err)
	case polled:
		text := "it answers requests of " + m.Gateway.Health().Dialect
		if way, why := m.Gateway.WayToAgent(ctx); way != "" {
			text += "; " + way + ": " + why
		}
		e.add(CheckAgent, OK, name, text)
	case verdict == translate.Yes:
		e.add(CheckAgent, OK, name, "it answers requests of "+c.Dialect)
	default:
		e.add(CheckAgent, Warning, name, fmt.Sprintf("it accepts connections, but does not answer as an agent "+
			"of %s does; check its URL and its dialect", c.Dialect))
	}
}

// askTime asks an agent of HTTP for a card, whether it has one or not, and returns the time of its answer; the zero
// time if the answer names none.
func askTime(ctx context.Context, c *httptransport.Config) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	u, err := url.Parse(c.URL)
	if err != nil {
		return time.Time{}, err
	}
	u.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(".well-known/agent-card.json").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	req.Header, req.Host = c.Header.Clone(), c.Header.Get("Host")
	transport := &http.Transport{TLSClientConfig: c.TLS.Clone(), DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return time.Time{}, unreachable(err)
	}
	defer res.Body.Close()
	at, _ := http.ParseTime(res.Header.Get("Date"))
	return at, nil
}

// isServed reports whether a URL on this machine is at one of the addresses.
func isServed(rawURL string, addresses []string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "ws": "80"}[u.Scheme], "443")
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip.IsLoopback()
	return slices.ContainsFunc(addresses, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		n, bad := strconv.ParseUint(port, 10, 16)
		return err == nil && bad == nil && uint(n) >= at.StartPort && uint(n) <= at.EndPort &&
			(strings.EqualFold(at.Host, u.Hostname()) || local && (at.Host == "" || at.Host == "localhost" ||
				net.ParseIP(at.Host).IsLoopback() || net.ParseIP(at.Host).IsUnspecified()))
	})
}

// unreachable is the error of an agent to which there is no connection.
func unreachable(err error) error {
	return httptransport.DialFailed(err, "the agent cannot be reached; start it, or correct its URL")
}

// dialURL connects to the host of a URL of WebSocket, and closes the connection.
func dialURL(ctx context.Context, rawURL string, config *tls.Config) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	secure, port := u.Scheme == "wss", u.Port()
	dial := (&net.Dialer{}).DialContext
	if secure {
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[secure]
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return unreachable(err)
	}
	return conn.Close()
}
