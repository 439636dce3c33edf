// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/acps/locate"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/endpoint"
)

// describeTimeout is the time for all requests of describe together.
const describeTimeout = 30 * time.Second

// maxCard is the largest size of a card, in bytes.
const maxCard = 1 << 20

func describeCommand() *cobra.Command {
	var f connectionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe <url>|<aic>",
		Short: "Describes the Partner at a URL, or with an AIC",
		Long: `
Describes the Partner at a URL, the mount point of aip_gateway or its rpc: the
certificate of its site, whether the site asks Leaders for theirs, its ACS (Agent Capability Specification
of AIP) and its cards for A2A clients. It sends no command.

In place of the URL, give an AIC that a registry or a discovery server knows: it also
says who knows it, and what its ACS there says.

Exit status: 0 the URL has an ACS or a card; 1 it has none, or cannot be reached.
`,
		Example: `  $ caddy aip describe https://localhost:8443
  $ caddy aip describe https://localhost:8443 --json
  $ caddy aip describe 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4 --registry https://registry.example`,
		Args: cobra.ExactArgs(1),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the description, with the whole ACS and cards, as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), describeTimeout)
		defer cancel()
		found, err := f.findAIC(ctx, args[0])
		if err != nil {
			return err
		}
		d, err := f.describeFound(ctx, args[0], found)
		if err != nil {
			return f.explain(err)
		}
		if asJSON {
			return printJSON(cmd, d)
		}
		return d.print(&printer{w: cmd.OutOrStdout()})
	}
	return cmd
}

// description is the result of describe at a URL.
type description struct {
	URL         string              `json:"url"`
	Found       *foundSummary       `json:"found,omitempty"`       // nil for a Partner given by its URL
	Problem     string              `json:"problem,omitempty"`     // why a found one shows nothing
	Certificate *certificateSummary `json:"certificate,omitempty"` // nil without TLS
	AsksLeaders bool                `json:"asks_for_client_certificate"`
	ACS         json.RawMessage     `json:"acs,omitempty"`
	Card        json.RawMessage     `json:"agent_card,omitempty"`  // of A2A 0.3 and 1.0
	LegacyCard  json.RawMessage     `json:"legacy_card,omitempty"` // of A2A before 0.3
}

// foundSummary is the knowledge of other servers about a Partner given by its AIC.
type foundSummary struct {
	AIC     string          `json:"aic"`
	Source  string          `json:"source"`
	Dialect string          `json:"dialect"`
	ACS     json.RawMessage `json:"acs"`
}

// certificateSummary is the important part of the certificate of a site.
type certificateSummary struct {
	Names    []string  `json:"names"`
	Issuer   string    `json:"issuer"`
	NotAfter time.Time `json:"not_after"`
	AIC      string    `json:"aic,omitempty"` // empty if it has none
}

// describeFound describes a Partner at a URL, or a found one. Few agents show their ACS themselves, so a found ACS is
// described also without anything more.
func (f *connectionFlags) describeFound(ctx context.Context, url string, found *locate.Agent) (*description, error) {
	if found == nil {
		return f.describe(ctx, url)
	}
	d, err := f.describe(ctx, found.URL)
	if d == nil {
		d = &description{URL: found.URL}
	}
	if err != nil {
		d.Problem = f.explain(err).Error()
	}
	d.Found = &foundSummary{found.AIC, found.Source, found.Dialect, found.ACS}
	return d, nil
}

// describe describes a Partner at a URL, its mount point or its endpoint. Its findings before an error are returned
// beside it.
func (f *connectionFlags) describe(ctx context.Context, mount string) (*description, error) {
	base, err := url.Parse(endpoint.Mount(mount))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the URL must begin with https:// or http:// and have a host")
	}
	d := &description{URL: mount}
	client, err := f.reader(func() { d.AsksLeaders = true })
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	status := 0
	for path, into := range map[string]*json.RawMessage{
		"acs.json": &d.ACS, "agent-card.json": &d.Card, "agent.json": &d.LegacyCard,
	} {
		if status, err = d.get(ctx, client, base.JoinPath(".well-known", path).String(), into); err != nil {
			return nil, err
		}
	}
	if d.ACS == nil && d.Card == nil && d.LegacyCard == nil {
		if status == http.StatusOK {
			return d, leader.ErrEmpty
		}
		return d, &leader.StatusError{Status: status}
	}
	return d, nil
}

// reader returns a client for reading documents, over one connection at a time. asked is called when the server asks
// for a certificate.
func (f *connectionFlags) reader(asked func()) (*http.Client, error) {
	cert, err := f.certificate()
	if err != nil {
		return nil, err
	}
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	server, err := f.server()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	server.Require(config)
	shows := f.shows(cert)
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked()
		return shows(info)
	}
	// One connection at a time: so the certificate and the cards come over the same one.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, MaxConnsPerHost: 1}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, nil
}

// get reads a document of JSON, if there is one at a URL.
func (d *description) get(ctx context.Context, c *http.Client, url string, into *json.RawMessage) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		d.Certificate = summarise(res.TLS.PeerCertificates[0])
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxCard))
	if err == nil && res.StatusCode == http.StatusOK && json.Valid(body) {
		*into = body
	}
	return res.StatusCode, err
}

func summarise(c *x509.Certificate) *certificateSummary {
	s := &certificateSummary{Names: c.DNSNames, Issuer: c.Issuer.String(), NotAfter: c.NotAfter}
	for _, ip := range c.IPAddresses {
		s.Names = append(s.Names, ip.String())
	}
	if aic, err := identity.FromCertificate(c); err == nil {
		s.AIC = string(aic)
	}
	return s
}

func (d *description) print(p *printer) error {
	p.line("url", d.URL)
	if f := d.Found; f != nil {
		p.line("found", "by "+f.Source+"; it speaks "+f.Dialect)
		printACS(p, "", f.ACS)
	}
	if d.Problem != "" {
		p.line("problem", d.Problem)
	}
	if c := d.Certificate; c != nil {
		p.line("cert", strings.Join(c.Names, " "))
		p.line("", "issued by "+c.Issuer+", valid until "+stamp(c.NotAfter))
		if c.AIC != "" {
			p.line("", "AIC "+c.AIC)
		}
	}
	if d.Problem != "" && d.Certificate == nil {
		return p.err
	}
	asks := "the site asks for no client certificate: a Partner with identity required refuses every call"
	if d.AsksLeaders {
		asks = "the site asks for a client certificate"
	}
	p.line("leaders", asks)
	printACS(p, "acs", d.ACS)
	d.printCard(p, "card", d.Card)
	if len(d.Card) == 0 {
		d.printCard(p, "card", d.LegacyCard)
	}
	return p.err
}

// printACS prints the important part of an ACS, if there is one.
func printACS(p *printer, label string, content json.RawMessage) {
	var acs struct{ AIC, Name, Version, Description, ProtocolVersion string }
	if json.Unmarshal(content, &acs) == nil {
		p.line(label, joined(acs.AIC, acs.Name, acs.Version, acs.Description))
		p.line("", strings.TrimSpace("AIP, ACS "+acs.ProtocolVersion))
	}
}

func (*description) printCard(p *printer, label string, content json.RawMessage) {
	var card struct {
		Name, Version, Description, ProtocolVersion, URL string
		SupportedInterfaces                              []struct{ URL, ProtocolBinding, ProtocolVersion string }
	}
	if json.Unmarshal(content, &card) != nil {
		return
	}
	p.line(label, joined(card.Name, card.Version, card.Description))
	if card.URL != "" {
		p.line("", joined("A2A "+card.ProtocolVersion, card.URL))
	}
	for _, i := range card.SupportedInterfaces {
		p.line("", joined("A2A "+i.ProtocolVersion, i.ProtocolBinding, i.URL))
	}
}
