// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/endpoint"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Options are the contents of an ACS beside the agent's card. Base is required.
type Options struct {
	AIC     string // empty before a registry has assigned one
	Version string // V0100, V0201 or V0202. Default: VersionOf the AIC

	AgentVersion string // the agent's own version. Default: the card's

	// Base is the public URL of the mount point. The Partner's endpoint is below it. It is made of nothing from the agent.
	// Named is set if Base is configured, so that its host belongs into the Partner's certificate.
	Base  string
	Named bool

	MutualTLS    bool // callers may show a certificate
	Notification bool // callers may register webhooks
	Groups       bool // the Partner takes part in groups

	// Inbox is the URL of the broker, with its virtual host, with the Partner's inbox for invitations to groups; empty for
	// none. ACS 01.00 has none.
	Inbox string

	// Validity is the validity of the Partner's certificates, in days; 0 leaves it to the CA.
	Validity int

	// CAChallengeBaseURL is the place of the answers to the challenges of the CA of a v01.00 Partner.
	CAChallengeBaseURL string

	// The provider of the Partner. Organization and ProviderURL go before the card's; CountryCode is CN by default.
	Organization, Department, ProviderURL, License, CountryCode string
}

// Make makes the ACS of a Partner, without its time: the agent's name and skills from its card, and the place of the
// gateway as its Partner. Values in neither the card nor the options are left out. Check finds them.
func Make(c *translate.Card, o Options) *Document {
	v := cmp.Or(o.Version, VersionOf(o.AIC))
	d := &Document{
		AIC: o.AIC, Active: true, ProtocolVersion: v,
		Name: cmp.Or(c.Name, "agent"), Description: cmp.Or(c.Description, c.Name, "agent"),
		Version: cmp.Or(o.AgentVersion, c.Version, "0"),
		IconURL: c.IconURL, DocumentationURL: c.DocumentationURL,
		Provider: Provider{
			CountryCode: cmp.Or(o.CountryCode, "CN"), Organization: cmp.Or(o.Organization, c.Provider.Organization),
			Department: o.Department, URL: cmp.Or(o.ProviderURL, c.Provider.URL), License: o.License,
		},
		SecuritySchemes: map[string]Scheme{},
		EndPoints:       []EndPoint{{URL: assigned(endpoint.Of(o.Base), o.AIC), Transport: jsonrpc}},
		Capabilities:    Capabilities{Streaming: true, Notification: o.Notification, MessageQueue: []string{}},
		InputModes:      modes(c.DefaultInputModes), OutputModes: modes(c.DefaultOutputModes),
		Skills: make([]Skill, 0, len(c.Skills)),
	}
	if o.Inbox != "" && !isV1(v) {
		d.EndPoints = append(d.EndPoints, EndPoint{
			URL: assigned(o.Inbox+"?inbox=inbox_"+Placeholder, o.AIC), Transport: amqp})
	}
	if o.MutualTLS {
		d.SecuritySchemes[mtls] = Scheme{Type: mutualTLS, CAChallengeBaseURL: o.CAChallengeBaseURL}
		for i := range d.EndPoints {
			d.EndPoints[i].Security = []map[string][]string{{mtls: {}}}
		}
	}
	switch {
	case !o.Groups:
	case isV1(v):
		// It lists the possible versions. RabbitMQ 4 is none of them; the gateway speaks to it as well.
		d.Capabilities.MessageQueue = []string{"rabbitmq:3.9", "rabbitmq:3.10", "rabbitmq:3.11"}
	default:
		d.Capabilities.MessageQueue = []string{"rabbitmq:>=3.9"}
	}
	for i := range c.Skills {
		d.Skills = append(d.Skills, skill(&c.Skills[i], d.Version))
	}
	if !isV1(v) {
		d.Certificate = o.certificate()
	}
	return d
}

// isV1 reports whether a version is of the first generation of ACPs.
func isV1(version string) bool { return strings.HasPrefix(version, "01.") }

// assigned puts the AIC into a URL, once there is one.
func assigned(url, aic string) string {
	if aic == "" {
		return url
	}
	return strings.ReplaceAll(url, Placeholder, aic)
}

// certificate returns the contents of the certificates requested from the CA; nil for none.
func (o *Options) certificate() *Certificate {
	c := Certificate{RequestedValidity: o.Validity}
	if u, err := url.Parse(assigned(o.Base, o.AIC)); err == nil && o.Named && u.Hostname() != "" {
		if ip := net.ParseIP(u.Hostname()); ip != nil {
			c.AltNames.IP = []string{ip.String()}
		} else {
			c.AltNames.DNS = []string{strings.ToLower(u.Hostname())}
		}
	}
	if c.RequestedValidity == 0 && len(c.AltNames.DNS)+len(c.AltNames.IP) == 0 {
		return nil
	}
	return &c
}

// skill returns a skill. Cards give skills no version of their own, so theirs is the agent's.
func skill(s *translate.Skill, version string) Skill {
	made := Skill{
		ID: cmp.Or(s.ID, s.Name), Name: cmp.Or(s.Name, s.ID), Description: cmp.Or(s.Description, s.Name, s.ID),
		Version: version, Tags: slices.Clone(s.Tags), Examples: s.Examples,
		InputModes: wire.MediaTypes(s.InputModes), OutputModes: wire.MediaTypes(s.OutputModes),
	}
	if made.Tags == nil {
		made.Tags = []string{}
	}
	return made
}

// modes returns the media types of a card, or the one of text.
func modes(list []string) []string {
	if len(list) == 0 {
		return []string{"text/plain"}
	}
	return wire.MediaTypes(list)
}
