// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// CardForm is the version of a written card.
type CardForm uint8

// The forms of a card.
const (
	CardLegacy CardForm = iota // v0.1
	CardV02                    // 0.2, at the path of v0.1
	CardV03                    // 0.3
	CardV1                     // 1.0
	CardHybrid                 // 1.0 with the members of 0.3 beside it, for callers naming no version
)

// Ways to treat the signature of an agent's card.
const (
	DropSignatures   = "drop"   // show the card without it, since the gateway changes the card
	KeepSignatures   = "keep"   // show the agent's card unchanged, with the agent's own URLs in it
	RefuseSignatures = "refuse" // show no card; AppendCard ignores it
)

// CardOptions are the options for writing a card.
type CardOptions struct {
	Form CardForm
	// Base is the public URL of the mount point. All URLs for callers are made of it, and never of the agent's own.
	Base string
	// GRPC is the place of gRPC, as host and port, the form for its clients; empty if it is not served.
	GRPC string
	// Generations are the names of the dialects of callers here: a2a/legacy, a2a/0.3, a2a/0.3-rest, a2a/1.0,
	// a2a/1.0-rest, a2a/1.0-grpc. Names of other protocols are ignored. A card lists only interfaces of these dialects.
	Generations []string

	Push     bool // callers may register webhooks
	Extended bool // there is a second card for authenticated callers
	// Schemes are the ways for callers to authenticate themselves, by the name of their dialect. A dialect not in it needs
	// none.
	Schemes    map[string]Schemes
	Signatures string // DropSignatures, the default, or KeepSignatures
}

// Schemes are the ways for callers to authenticate themselves. They need one of them. The zero value is for a Partner
// without authentication.
type Schemes struct {
	MutualTLS bool     // a client certificate
	Bearer    bool     // a bearer token
	OpenID    []string // tokens of issuers with their OpenID configurations at these URLs
	KeyHeader string   // a key in a header with this name; empty for none
}

func (o *CardOptions) serves(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(o.Generations, n) })
}

// CardFormOf returns the form of the card for a request of a file under /.well-known, by the version named by the
// caller, empty for none. ok is false if none of the dialects has such a file.
func CardFormOf(file, named string, generations []string) (form CardForm, ok bool) {
	o := CardOptions{Generations: generations}
	has1, has03 := o.serves(version.Name10, version.Name10REST), o.serves(version.Name03)
	switch file {
	case "agent.json":
		// A card of 0.2 has everything for callers of v0.1.
		if has03 {
			return CardV02, true
		}
		return CardLegacy, o.serves(version.NameLegacy)
	case "agent-card.json":
		switch generation := version.Parse(named); {
		case has03 && (generation == version.V03 || !has1):
			return CardV03, true
		case generation == version.V1:
			return CardV1, has1
		}
		return CardHybrid, has1
	}
	return 0, false
}

// AppendCard appends the card of the gateway in the agent's place: the agent's name and skills, the gateway's URLs, and
// the gateway's capabilities. The security is the gateway's too, since callers never reach the agent.
func AppendCard(dst []byte, c *translate.Card, o CardOptions) []byte {
	if o.Signatures == KeepSignatures && c.Signed {
		return append(dst, c.Raw...)
	}
	base, below := o.Base, strings.TrimRight(o.Base, "/") // paths are appended to the URL of HTTP+JSON
	v1 := o.Form == CardV1 || o.Form == CardHybrid
	// If nothing of 1.0 is served, a card in its form lists the other dialects.
	zero := !v1 || o.Form == CardHybrid && o.serves(version.Name03)

	dst = append(dst, `{"name":`...)
	dst = task.AppendString(dst, cmp.Or(c.Name, "agent"))
	dst = append(dst, `,"description":`...)
	dst = task.AppendString(dst, cmp.Or(c.Description, c.Name, "agent"))
	dst = append(dst, `,"version":`...)
	dst = task.AppendString(dst, cmp.Or(c.Version, "0"))
	if c.Provider.Organization != "" {
		dst = append(dst, `,"provider":{"organization":`...)
		dst = task.AppendString(dst, c.Provider.Organization)
		dst = append(dst, `,"url":`...)
		dst = append(task.AppendString(dst, c.Provider.URL), '}')
	}
	dst = wire.AppendOptional(dst, `,"documentationUrl":`, c.DocumentationURL)
	if o.Form != CardLegacy {
		dst = wire.AppendOptional(dst, `,"iconUrl":`, c.IconURL)
	}
	if zero {
		dst = append(dst, `,"url":`...)
		dst = task.AppendString(dst, base)
		if o.Form != CardLegacy {
			dst = append(dst, `,"protocolVersion":"0.3.0","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":`...)
			dst = task.AppendString(dst, base)
			dst = append(dst, `,"transport":"JSONRPC"}`...)
			if o.serves(version.Name03REST) {
				dst = task.AppendString(append(dst, `,{"url":`...), below)
				dst = append(dst, `,"transport":"HTTP+JSON"}`...)
			}
			dst = append(dst, ']')
		}
	}
	if v1 {
		dst = appendCardInterfaces(dst, &o)
	}
	dst = append(dst, `,"capabilities":{"streaming":true,"pushNotifications":`...)
	dst = strconv.AppendBool(dst, o.Push)
	if !v1 {
		// No version defines a form for the history of states. 1.0 does not have the member, and readers validating a card
		// against its schema refuse it; before 1.0 it may be left out.
		dst = append(dst, `,"stateTransitionHistory":false`...)
	}
	if v1 {
		dst = append(dst, `,"extendedAgentCard":`...)
		dst = strconv.AppendBool(dst, o.Extended)
	}
	if o.Form != CardLegacy {
		dst = appendCardExtensions(dst, c.Extensions)
	}
	dst = append(dst, '}')
	if zero && o.Form != CardLegacy && (!v1 || o.Extended) { // without it, false is meant
		dst = append(dst, `,"supportsAuthenticatedExtendedCard":`...)
		dst = strconv.AppendBool(dst, o.Extended)
	}
	dst = appendCardSecurity(dst, &o, v1, zero)
	legacy := o.Form == CardLegacy
	dst = wire.AppendStrings(dst, `,"defaultInputModes":`, modes(c.DefaultInputModes, legacy, true))
	dst = wire.AppendStrings(dst, `,"defaultOutputModes":`, modes(c.DefaultOutputModes, legacy, true))
	dst = append(dst, `,"skills":[`...)
	for i := range c.Skills {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCardSkill(dst, &c.Skills[i], legacy)
	}
	return append(dst, ']', '}')
}

// appendCardInterfaces appends the list of 1.0, the preferred one first. All but gRPC are at the mount point: requests
// of JSON-RPC are distinguished by their method, those of HTTP+JSON by their path.
func appendCardInterfaces(dst []byte, o *CardOptions) []byte {
	below := strings.TrimRight(o.Base, "/")
	dst = append(dst, `,"supportedInterfaces":[`...)
	begin := len(dst)
	for _, i := range [...]struct{ name, url, binding, version string }{
		{version.Name10, o.Base, bindingJSONRPC, "1.0"},
		{version.Name10REST, below, bindingREST, "1.0"},
		{version.Name10GRPC, o.GRPC, bindingGRPC, "1.0"},
		{version.Name03, o.Base, bindingJSONRPC, "0.3"},
		{version.Name03REST, below, bindingREST, "0.3"},
	} {
		// A caller asking for 1.0 shall not choose 0.3 if 1.0 is served.
		if i.url == "" || !o.serves(i.name) ||
			i.version == "0.3" && o.Form == CardV1 && o.serves(version.Name10, version.Name10REST) {
			continue
		}
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"url":`...)
		dst = task.AppendString(dst, i.url)
		dst = append(dst, `,"protocolBinding":"`+i.binding+`","protocolVersion":"`+i.version+`"}`...)
	}
	return append(dst, ']')
}

// appendCardExtensions appends the extensions of the agent: it is given those activated by a caller.
func appendCardExtensions(dst []byte, list []translate.Extension) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(dst, `,"extensions":[`...)
	for i := range list {
		x := &list[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = task.AppendString(append(dst, `{"uri":`...), x.URI)
		dst = wire.AppendOptional(dst, `,"description":`, x.Description)
		if x.Required {
			dst = append(dst, `,"required":true`...)
		}
		if x.Params != nil {
			dst = append(append(dst, `,"params":`...), x.Params...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// scheme is one way to authenticate oneself, as a card names it.
type scheme struct {
	name    string
	legacy  string // in the cards of 0.1; empty for none
	openAPI string // the members up to 0.3, those of OpenAPI; empty if 0.2 has no such scheme
	v03     string // the members in 0.3
	v1      string // the members in 1.0
}

// list returns the schemes in the order for a caller to try them.
func (s *Schemes) list() (list []scheme) {
	if s.MutualTLS {
		list = append(list, scheme{"mtls", "mutualTLS", "", `"type":"mutualTLS"`, `"mtlsSecurityScheme":{}`})
	}
	for i, url := range s.OpenID {
		name := "oidc"
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		quoted := string(task.AppendString(nil, url))
		openAPI := `"type":"openIdConnect","openIdConnectUrl":` + quoted
		list = append(list, scheme{name, "OpenIDConnect", openAPI, openAPI,
			`"openIdConnectSecurityScheme":{"openIdConnectUrl":` + quoted + `}`})
	}
	if s.Bearer {
		list = append(list, scheme{"bearer", "Bearer", `"type":"http","scheme":"bearer"`, `"type":"http","scheme":"bearer"`,
			`"httpAuthSecurityScheme":{"scheme":"Bearer"}`})
	}
	if s.KeyHeader != "" {
		quoted := string(task.AppendString(nil, s.KeyHeader))
		openAPI := `"type":"apiKey","in":"header","name":` + quoted
		list = append(list, scheme{"key", "ApiKey", openAPI, openAPI,
			`"apiKeySecurityScheme":{"location":"header","name":` + quoted + `}`})
	}
	return list
}

// required returns the schemes of a card, and those for callers of 1.0 only beside them.
func (o *CardOptions) required() (required, others []scheme) {
	v1 := o.schemesOf(version.Name10, version.Name10REST, version.Name10GRPC)
	v03 := o.schemesOf(version.Name03, version.Name03REST)
	switch {
	case o.Form == CardLegacy:
		return o.schemesOf(version.NameLegacy), nil
	case o.Form == CardHybrid && o.serves(version.Name03):
		return v03, slices.DeleteFunc(v1, func(s scheme) bool { return slices.Contains(v03, s) })
	case o.Form >= CardV1 && o.serves(version.Name10, version.Name10REST, version.Name10GRPC):
		return v1, nil
	}
	return v03, nil
}

// schemesOf returns the schemes of the first served dialect of one version. The dialects of a version have the same
// schemes.
func (o *CardOptions) schemesOf(dialects ...string) []scheme {
	for _, name := range dialects {
		if s := o.Schemes[name]; o.serves(name) {
			return s.list()
		}
	}
	return nil
}

// appendCardSecurity appends the ways for callers to authenticate themselves. In a card for both versions, a scheme is
// written in both ways at once, also if it works in one of them only: each version reads its own members, and readers
// of both refuse a card with an unknown scheme. Its member security then lists the schemes of 0.3; a caller naming its
// version gets a card with nothing else.
func appendCardSecurity(dst []byte, o *CardOptions, v1, zero bool) []byte {
	required, others := o.required()
	list := slices.Concat(required, others)
	if o.Form == CardLegacy {
		dst = append(dst, `,"authentication":{"schemes":[`...)
		for i, s := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '"'), s.legacy...), '"')
		}
		return append(dst, `]}`...)
	}
	if o.Form == CardV02 {
		// 0.2 has no scheme for certificates, and its readers refuse an unknown scheme. A card naming the others alone would
		// say that a certificate is not enough.
		if slices.ContainsFunc(list, func(s scheme) bool { return s.openAPI == "" }) {
			return dst
		}
	}
	if len(list) == 0 {
		return dst
	}
	dst = append(dst, `,"securitySchemes":{`...)
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), s.name...), `":{`...)
		switch {
		case v1 && zero:
			dst = append(append(append(dst, s.v03...), ','), s.v1...)
		case v1:
			dst = append(dst, s.v1...)
		default:
			dst = append(dst, s.v03...)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, '}')
	if zero && len(required) > 0 {
		dst = append(dst, `,"security":[`...)
		for i, s := range required {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, `{"`...), s.name...), `":[]}`...)
		}
		dst = append(dst, ']')
	}
	// securityRequirements of 1.0 is optional, and left out: in the schema its scopes are an object, but clients on a2a-go
	// up to 2.4.0 read an array, and refuse the whole card. The challenge of a refused call lists the requirements.
	return dst
}

func appendCardSkill(dst []byte, s *translate.Skill, legacy bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, cmp.Or(s.ID, s.Name))
	dst = append(dst, `,"name":`...)
	dst = task.AppendString(dst, cmp.Or(s.Name, s.ID))
	dst = append(dst, `,"description":`...)
	dst = task.AppendString(dst, cmp.Or(s.Description, s.Name, s.ID))
	dst = wire.AppendStrings(dst, `,"tags":`, s.Tags)
	if len(s.Examples) > 0 {
		dst = wire.AppendStrings(dst, `,"examples":`, s.Examples)
	}
	if len(s.InputModes) > 0 {
		dst = wire.AppendStrings(dst, `,"inputModes":`, modes(s.InputModes, legacy, false))
	}
	if len(s.OutputModes) > 0 {
		dst = wire.AppendStrings(dst, `,"outputModes":`, modes(s.OutputModes, legacy, false))
	}
	return append(dst, '}')
}

// modes returns the accepted or sent kinds of content. Agents of v0.1 name text by the type of its part, later ones by
// its media type. With needed, the list is never empty.
func modes(list []string, legacy, needed bool) []string {
	if len(list) == 0 && needed {
		list = []string{"text"}
	}
	if legacy {
		return list
	}
	return wire.MediaTypes(list)
}
