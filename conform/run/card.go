// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// readCard reads an A2A agent's card, and takes the URL of its interface from it. Without a card, the
// agent is tested at its own URL.
func (r *Runner) readCard(ctx context.Context) error {
	r.urls["card"] = cmp.Or(r.urls["card"], strings.TrimSuffix(r.base.String(), "/")+r.options.Card)
	e := r.clients["leader"].Do(ctx, wire.Request{Method: "GET", URL: r.urls["card"], Headers: map[string]string{
		"Accept": "application/json", "A2A-Version": "1.0"}}, probeTime)
	if err := reachable(e); err != nil {
		return err
	}
	r.card = decode(e.Body)
	endpoint, wanted := "rpc", "JSONRPC"
	if r.options.Transport == "rest" {
		endpoint, wanted = "rest", "HTTP+JSON"
	}
	if r.urls[endpoint] != "" {
		return nil
	}
	r.urls[endpoint] = r.base.String()
	interfaces, _ := at(r.card, "supportedInterfaces")
	list, _ := interfaces.([]any)
	for _, one := range list {
		binding, _ := at(one, "protocolBinding")
		version, _ := at(one, "protocolVersion")
		url, _ := at(one, "url")
		text, _ := url.(string)
		if binding == wanted && (version == nil || version == "1.0") && text != "" {
			r.urls[endpoint] = text
			return nil
		}
	}
	return nil
}
