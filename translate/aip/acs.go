// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The versions of ACPs whose ACS AppendACS writes.
const (
	ACS01 = "01.00" // the default
	ACS02 = "02.01"
)

// ACSOptions are the contents of an ACS that the agent's card does not have. AIC, Modified and Base are required.
type ACSOptions struct {
	AIC             string
	Modified        time.Time // of the configuration or the card, whichever came last
	ProtocolVersion string    // ACS01 or ACS02

	// Base is the public URL of the mount point. It is the Partner's one RPC URL, and made of nothing that the
	// agent says.
	Base         string
	MutualTLS    bool // callers must show a certificate
	Notification bool // callers may register webhooks
	Groups       bool // the Partner takes part in groups

	// CAChallengeBaseURL is where the CA of a v01.00 Partner looks for the answers to its challenges.
	CAChallengeBaseURL string

	// Who offers the Partner. Organization and ProviderURL go before the card's; CountryCode is CN by default.
	Organization, Department, ProviderURL, License, CountryCode string
}

func (o *ACSOptions) version() string {
	if o.ProtocolVersion == "" {
		return ACS01
	}
	return o.ProtocolVersion
}

// messageQueues returns the brokers of groups. v01.00 lists the versions that there may be, and RabbitMQ 4 is none of
// them; the gateway speaks to it as well.
func (o *ACSOptions) messageQueues() []string {
	switch {
	case !o.Groups:
		return nil
	case o.needsAll():
		return []string{"rabbitmq:3.9", "rabbitmq:3.10", "rabbitmq:3.11"}
	}
	return []string{"rabbitmq:>=3.9"}
}

// needsAll reports whether the version demands members that may be unknown: in v01.00 a provider has a licence.
func (o *ACSOptions) needsAll() bool { return strings.HasPrefix(o.version(), "01.") }

// MissingACS returns the paths of the members that the version of the ACS demands, and that neither the card nor
// the options say. AppendACS leaves such texts empty, and CAChallengeBaseURL out.
func MissingACS(c *translate.Card, o ACSOptions) []string {
	var missing []string
	need := func(path, value string) {
		if value == "" {
			missing = append(missing, path)
		}
	}
	need("aic", o.AIC)
	if o.needsAll() {
		need("provider.organization", cmp.Or(o.Organization, c.Provider.Organization))
		need("provider.url", cmp.Or(o.ProviderURL, c.Provider.URL))
		need("provider.license", o.License)
		if o.MutualTLS {
			need("securitySchemes.mtls.x-caChallengeBaseUrl", o.CAChallengeBaseURL)
		}
	}
	return missing
}

// AppendACS appends the Partner's AgentCapabilitySpec (ACS v01.00, v02.01): who the agent is by its card, and how the
// gateway that is its Partner is reached.
func AppendACS(dst []byte, c *translate.Card, o ACSOptions) []byte {
	version := cmp.Or(c.Version, "0")
	dst = append(dst, `{"aic":`...)
	dst = task.AppendString(dst, o.AIC)
	dst = append(dst, `,"active":true,"lastModifiedTime":`...)
	dst = task.AppendTime(dst, o.Modified.In(beijing).Truncate(time.Second))
	dst = append(dst, `,"protocolVersion":`...)
	dst = task.AppendString(dst, o.version())
	dst = append(dst, `,"name":`...)
	dst = task.AppendString(dst, cmp.Or(c.Name, "agent"))
	dst = append(dst, `,"description":`...)
	dst = task.AppendString(dst, cmp.Or(c.Description, c.Name, "agent"))
	dst = append(dst, `,"version":`...)
	dst = task.AppendString(dst, version)
	dst = appendACSText(dst, `,"iconUrl":`, c.IconURL, false)
	dst = appendACSText(dst, `,"documentationUrl":`, c.DocumentationURL, false)

	all := o.needsAll()
	dst = append(dst, `,"provider":{"countryCode":`...)
	dst = task.AppendString(dst, cmp.Or(o.CountryCode, "CN"))
	dst = appendACSText(dst, `,"organization":`, cmp.Or(o.Organization, c.Provider.Organization), all)
	dst = appendACSText(dst, `,"department":`, o.Department, false)
	dst = appendACSText(dst, `,"url":`, cmp.Or(o.ProviderURL, c.Provider.URL), all)
	dst = appendACSText(dst, `,"license":`, o.License, all)

	dst = append(dst, `},"securitySchemes":{`...)
	if o.MutualTLS {
		dst = append(dst, `"mtls":{"type":"mutualTLS"`...)
		dst = appendACSText(dst, `,"x-caChallengeBaseUrl":`, o.CAChallengeBaseURL, false)
		dst = append(dst, '}')
	}
	dst = append(dst, `},"endPoints":[{"url":`...)
	dst = task.AppendString(dst, strings.TrimRight(o.Base, "/"))
	dst = append(dst, `,"transport":"JSONRPC"`...)
	if o.MutualTLS {
		dst = append(dst, `,"security":[{"mtls":[]}]`...)
	}
	dst = append(dst, `}],"capabilities":{"streaming":true,"notification":`...)
	dst = strconv.AppendBool(dst, o.Notification)
	dst = append(wire.AppendStrings(dst, `,"messageQueue":`, o.messageQueues()), '}')
	dst = appendACSModes(dst, `,"defaultInputModes":`, c.DefaultInputModes, true)
	dst = appendACSModes(dst, `,"defaultOutputModes":`, c.DefaultOutputModes, true)
	dst = append(dst, `,"skills":[`...)
	for i := range c.Skills {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendACSSkill(dst, &c.Skills[i], version)
	}
	return append(dst, ']', '}')
}

// appendACSSkill appends a skill. Cards give skills no version of their own, so theirs is the agent's.
func appendACSSkill(dst []byte, s *translate.Skill, version string) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, cmp.Or(s.ID, s.Name))
	dst = append(dst, `,"name":`...)
	dst = task.AppendString(dst, cmp.Or(s.Name, s.ID))
	dst = append(dst, `,"description":`...)
	dst = task.AppendString(dst, cmp.Or(s.Description, s.Name, s.ID))
	dst = append(dst, `,"version":`...)
	dst = task.AppendString(dst, version)
	dst = wire.AppendStrings(dst, `,"tags":`, s.Tags)
	if len(s.Examples) > 0 {
		dst = wire.AppendStrings(dst, `,"examples":`, s.Examples)
	}
	dst = appendACSModes(dst, `,"inputModes":`, s.InputModes, false)
	dst = appendACSModes(dst, `,"outputModes":`, s.OutputModes, false)
	return append(dst, '}')
}

// appendACSModes appends media types.
func appendACSModes(dst []byte, key string, list []string, needed bool) []byte {
	switch {
	case len(list) > 0:
		return wire.AppendStrings(dst, key, wire.MediaTypes(list))
	case needed:
		return wire.AppendStrings(dst, key, []string{"text/plain"})
	}
	return dst
}

// appendACSText appends a member, an empty one only where the version demands it.
func appendACSText(dst []byte, key, value string, needed bool) []byte {
	if needed {
		return task.AppendString(append(dst, key...), value)
	}
	return wire.AppendOptional(dst, key, value)
}
