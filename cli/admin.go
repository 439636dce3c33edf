// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/pflag"
)

// adminFlags are the address of the admin API.
type adminFlags struct{ address, config, adapter string }

func (f *adminFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.address, "address", "", "address of Caddy's admin API; default: that of --config, or localhost:2019")
	set.StringVar(&f.config, "config", "", "the running Caddy's configuration file")
	set.StringVar(&f.adapter, "adapter", "", "the adapter of --config")
}

// ask sends a request to the admin API. It decodes the answer, and also returns it.
func (f *adminFlags) ask(method, path string, q url.Values, body, into any) ([]byte, error) {
	res, err := f.request(method, path, q, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAdminAnswer))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, errNoGateway
	}
	return data, nil
}

// request sends a request to the admin API. The caller closes the body of the answer.
func (f *adminFlags) request(method, path string, q url.Values, body any) (*http.Response, error) {
	var content io.Reader
	header := make(http.Header)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return f.send(method, path, header, content)
}

// send sends a request with a body, or nil, to the admin API. The caller closes the body of the answer.
func (f *adminFlags) send(method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	if f.address == "" { // of the first request; the others go there, too
		address, err := caddycmd.DetermineAdminAPIAddress("", nil, f.config, f.adapter)
		if err != nil {
			return nil, err
		}
		f.address = address
	}
	res, err := caddycmd.AdminAPIRequest(f.address, method, path, header, body)
	if err != nil && strings.Contains(err.Error(), "connect: ") { // Caddy does not wrap the cause
		return nil, fmt.Errorf("%w; is Caddy running, with its admin API at this address? See --address and --config", err)
	}
	return res, answered(err)
}

// answered returns the sentence of an error in the admin API's answer. Caddy returns the answer as text.
func answered(err error) error {
	if err == nil {
		return nil
	}
	_, answer, _ := strings.Cut(err.Error(), "caddy responded with error: HTTP ")
	_, body, _ := strings.Cut(answer, ": ")
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(body), &refused) != nil || refused.Error == "" {
		return err
	}
	return errors.New(clean(refused.Error))
}

var errNoGateway = errors.New("the server at this address is not the admin API of a gateway; see --address")

// maxAdminAnswer is the largest size of an answer of the admin API, in bytes.
const maxAdminAnswer = 16 << 20
