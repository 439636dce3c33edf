// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// cardPatience is the time for one answer of a site.
const cardPatience = 5 * time.Second

// cardFindings checks for each Partner of a running gateway whether the addresses in its cards lead to it. If a site
// cannot be reached from here, or asks for a client certificate, nothing is known.
func cardFindings(ctx context.Context, agents []adminapi.AgentHealth) (findings []doctor.Finding) {
	client := &http.Client{
		Timeout: cardPatience,
		// Nothing secret is sent, and other checks judge the certificate.
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, a := range agents {
		if a.URL == "" {
			continue
		}
		warn := func(text string) {
			findings = append(findings, doctor.Finding{Check: doctor.CheckCard, Status: doctor.Warning, Subject: a.Name,
				Text: text + "; set public_url to the URL at which callers reach the mount"})
		}
		mount := strings.TrimSuffix(a.URL, "/")
		for _, file := range []string{"acs.json", "agent-card.json"} {
			all, why := namedBy(ctx, client, mount+"/.well-known/"+file)
			if why != "" && file == "acs.json" { // each Partner has this file
				warn(fmt.Sprintf("its URL is %s, %s", mount, why))
				break
			}
			for _, at := range all {
				if why := leadsElsewhere(ctx, client, at); why != "" {
					warn(fmt.Sprintf("%s names %s for calls, %s", file, at, why))
				}
			}
		}
	}
	return findings
}

// namedBy returns the addresses for calls of JSON-RPC in a card or an ACS, or the reason if it cannot be had.
func namedBy(ctx context.Context, client *http.Client, document string) (all []string, why string) {
	status, body, err := request(ctx, client, http.MethodGet, document, nil)
	type address struct{ URL, Transport, ProtocolBinding string }
	var card struct {
		URL                  string
		SupportedInterfaces  []address
		AdditionalInterfaces []address
		EndPoints            []address
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &card) != nil {
		return nil, unanswered(status, err)
	}
	for _, a := range append(append(append(card.SupportedInterfaces, card.AdditionalInterfaces...), card.EndPoints...),
		address{card.URL, "JSONRPC", ""}) {
		rpc := strings.EqualFold(cmp.Or(a.ProtocolBinding, a.Transport), "JSONRPC")
		if rpc && a.URL != "" && !slices.Contains(all, a.URL) {
			all = append(all, a.URL)
		}
	}
	return all, ""
}

// leadsElsewhere returns the fault of an address for calls; nothing if it answers as a Partner does. Any answer of
// JSON-RPC is such an answer.
func leadsElsewhere(ctx context.Context, client *http.Client, at string) string {
	status, body, err := request(ctx, client, http.MethodPost, at,
		[]byte(`{"jsonrpc":"2.0","id":"doctor","method":"tasks/get","params":{"id":"aip-doctor"}}`))
	var answer struct{ JSONRPC string }
	if err == nil && json.Unmarshal(body, &answer) == nil && answer.JSONRPC != "" {
		return ""
	}
	return unanswered(status, err)
}

// unanswered says what it means that no Partner has answered; nothing if one may answer only callers with a proof of
// their identity.
func unanswered(status int, err error) string {
	switch {
	case err != nil && strings.Contains(err.Error(), "remote error: tls"): // it asks for a client certificate
	case err != nil:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Sprintf("which cannot be reached from here (%v)", err)
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return fmt.Sprintf("where no Partner answers, but HTTP %d", status)
	}
	return ""
}

// request sends a request, and reads the answer.
func request(ctx context.Context, client *http.Client, method, at string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxCard))
	return res.StatusCode, answer, err
}
