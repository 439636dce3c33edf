// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mistake is a part of an ACS refused by a registry or its CA.
type Mistake struct {
	Path   string `json:"path"`   // the place, such as endPoints[0].url; $ for the whole
	Text   string `json:"text"`   // the mistake
	Advice string `json:"advice"` // the change to make
}

// String returns the mistake as a sentence.
func (m Mistake) String() string { return m.Path + ": " + m.Text + "; " + m.Advice }

// whole is the path of a whole document.
const whole = "$"

// read reads one JSON object. Numbers stay as they are written.
func read(body []byte) (map[string]any, error) {
	if len(body) > MaxSize {
		return nil, fmt.Errorf("an ACS of more than %d bytes is not read", MaxSize)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the first JSON value")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	return object, nil
}

// Check returns the mistakes in an ACS, in the order of the specification.
func Check(body []byte) []Mistake {
	doc, err := read(body)
	if err != nil {
		return []Mistake{{whole, err.Error(), "write one JSON object"}}
	}
	version, _ := doc["protocolVersion"].(string)
	c := &checker{v1: isV1(version), schemes: make(map[string]string)}
	if schemes, ok := doc["securitySchemes"].(map[string]any); ok {
		for name, scheme := range schemes {
			members, _ := scheme.(map[string]any)
			c.schemes[name], _ = members["type"].(string)
		}
	}
	c.root(doc)
	if aic, ok := doc["aic"].(string); ok && formats.version.MatchString(version) && aic != "" && aic != Unassigned &&
		c.v1 == strings.Contains(aic, ".") {
		c.add("protocolVersion", "the AIC is not of this version of ACPs",
			"write "+VersionOf(aic)+", or use the AIC that was assigned for "+version)
	}
	return c.mistakes
}

// checker collects the mistakes in a document.
type checker struct {
	v1       bool
	schemes  map[string]string // the types of the security schemes, by their names
	mistakes []Mistake
}

// rule checks a value at a path.
type rule func(path string, v any)

// member is a required or possible member of an object.
type member struct {
	name     string
	required bool
	rule     rule
	advice   string // what to do if a required one is missing; empty: write it
}

// formats are the formats of texts.
var formats = struct{ version, queue, queueV1, host *regexp.Regexp }{
	version: regexp.MustCompile(`^(01\.00|02\.0[0-2])$`),
	queue: regexp.MustCompile(
		`^(mqtt|amqp|kafka|redis|rabbitmq):(>=)?\d+\.(\*|\d+(\.\d+)?)( <\d+\.\d+(\.\d+)?)?$`),
	queueV1: regexp.MustCompile(`^(mqtt:(3\.1\.1|5\.0)|amqp:(0\.9\.1|1\.0)|kafka:(2\.8|3\.0|3\.1)|` +
		`redis:(6\.0|7\.0|7\.2)|rabbitmq:(3\.9|3\.10|3\.11))$`),
	host: regexp.MustCompile(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?` +
		`(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`),
}

// MaxValidity is the longest life of a certificate to request, in days.
const MaxValidity = 1825

func (c *checker) add(path, text, advice string) {
	c.mistakes = append(c.mistakes, Mistake{path, text, advice})
}

func (c *checker) root(doc map[string]any) {
	members := []member{
		{"aic", true, c.text, "write the AIC of the agent; before a registry has assigned one, write any text"},
		{"active", true, c.truth, ""},
		{"lastModifiedTime", true, c.time, ""},
		{"protocolVersion", true, c.matches(formats.version, "write 01.00, 02.00, 02.01 or 02.02"), ""},
		{"name", true, c.text, ""}, {"description", true, c.text, ""}, {"version", true, c.text, ""},
		{"iconUrl", false, c.link, ""}, {"documentationUrl", false, c.link, ""}, {"webAppUrl", false, c.link, ""},
		{"provider", true, c.provider, ""},
		{"securitySchemes", true, c.each(c.scheme), ""},
		{"endPoints", true, c.list(c.endPoint), "write [] for an agent that offers no service"},
		{"capabilities", true, c.capabilities, ""},
		{"defaultInputModes", true, c.list(c.text), ""}, {"defaultOutputModes", true, c.list(c.text), ""},
		{"skills", true, c.list(c.skill), ""},
	}
	if !c.v1 {
		members = append(members, member{"entityUserId", false, c.text, ""}, member{"entityMeta", false, c.free, ""},
			member{"certificate", false, c.certificate, ""})
	}
	c.object("", doc, members...)
}

// object checks the members of an object. There may be no others.
func (c *checker) object(path string, v any, members ...member) map[string]any {
	object, ok := v.(map[string]any)
	if !ok {
		c.add(path, "it is "+kind(v), "write an object")
		return nil
	}
	known := make(map[string]bool, len(members))
	for _, m := range members {
		known[m.name] = true
		switch value, there := object[m.name]; {
		case there:
			m.rule(join(path, m.name), value)
		case m.required:
			advice := m.advice
			if advice == "" {
				advice = "write it"
			}
			c.add(join(path, m.name), "it is missing", advice)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !known[name] {
			c.add(join(path, name), "a registry refuses members that it does not know", "remove it")
		}
	}
	return object
}

func (c *checker) provider(path string, v any) {
	members := []member{
		{"countryCode", false, c.text, ""},
		{"organization", true, c.text, "name who provides the agent: " +
			"a CA issues no certificate without it"},
		{"department", false, c.text, ""},
		{"url", c.v1, c.link, "write the URL of who provides the agent"},
		{"license", c.v1, c.text, "write the licence of who provides the agent"},
	}
	if !c.v1 {
		members = append(members, member{"name", false, c.text, ""}, member{"email", false, c.text, ""},
			member{"domainRegistrations", false, c.list(func(path string, v any) {
				c.object(path, v, member{"domain", true, c.text, ""}, member{"registrationNumber", true, c.text, ""},
					member{"registrationType", true, c.oneOf("ICP", "WHOIS"), ""})
			}), ""})
	}
	c.object(path, v, members...)
}

func (c *checker) scheme(path string, v any) {
	object, _ := v.(map[string]any)
	kind, _ := object["type"].(string)
	members := []member{{"type", true, c.text, ""}, {"description", false, c.text, ""}}
	switch kind {
	case mutualTLS:
		members = append(members, member{"x-caChallengeBaseUrl", c.v1, c.link,
			"write the URL where the CA finds the answers to its challenges"})
	case "openIdConnect":
		members = append(members, member{"openIdConnectUrl", true, c.link, ""})
	case "apiKey":
		members = append(members, member{"name", true, c.text, ""},
			member{"in", true, c.oneOf("query", "header", "cookie"), ""})
	case "http":
		members = append(members, member{"scheme", true, c.text, ""}, member{"bearerFormat", false, c.text, ""})
	case "oauth2":
		members = append(members, member{"flows", true, c.flows, ""})
	}
	if kinds := c.kinds(); kind != "" && !slices.Contains(kinds, kind) {
		c.add(join(path, "type"), fmt.Sprintf("it is %q", kind), "write "+strings.Join(kinds, ", "))
		return
	}
	c.object(path, v, members...)
}

// kinds returns the types of security schemes of the version.
func (c *checker) kinds() []string {
	if c.v1 {
		return []string{mutualTLS, "openIdConnect"}
	}
	return []string{mutualTLS, "openIdConnect", "apiKey", "http", "oauth2"}
}

func (c *checker) flows(path string, v any) {
	flow := func(path string, v any) {
		c.object(path, v, member{"authorizationUrl", false, c.link, ""}, member{"tokenUrl", false, c.link, ""},
			member{"refreshUrl", false, c.link, ""}, member{"scopes", true, c.each(c.text), ""})
	}
	c.object(path, v, member{"implicit", false, flow, ""}, member{"password", false, flow, ""},
		member{"clientCredentials", false, flow, ""}, member{"authorizationCode", false, flow, ""})
}

// schemesOf are the schemes of URLs for each transport.
var schemesOf = map[string][]string{
	jsonrpc: {"https", "http"}, "HTTP_JSON": {"https", "http"}, amqp: {"amqps", "amqp"},
}

func (c *checker) endPoint(path string, v any) {
	transports := []string{jsonrpc, "HTTP_JSON"}
	if !c.v1 {
		transports = append(transports, amqp)
	}
	object := c.object(path, v, member{"url", true, c.link, ""}, member{"transport", true, c.oneOf(transports...), ""},
		member{"security", false, c.list(c.requirement), ""})
	if object == nil {
		return
	}
	if !c.requiresMTLS(object["security"]) {
		c.add(join(path, "security"), "it names no scheme of type mutualTLS",
			`write [{"mtls": []}]; of a Partner, have its callers prove who they are by certificates`)
	}
	transport, _ := object["transport"].(string)
	address, _ := object["url"].(string)
	u, err := url.Parse(address)
	if fits := schemesOf[transport]; err == nil && len(fits) > 0 && u.Host != "" && u.Scheme != fits[0] {
		text := fmt.Sprintf("the scheme %s has no TLS, without which there is no mutualTLS", u.Scheme)
		if !slices.Contains(fits, u.Scheme) {
			text = fmt.Sprintf("the scheme %s does not fit the transport %s", u.Scheme, transport)
		}
		c.add(join(path, "url"), text, "write a URL that begins with "+fits[0]+"://")
	}
}

// requiresMTLS reports whether one of the alternatives of an endpoint names a scheme of type mutualTLS.
func (c *checker) requiresMTLS(security any) bool {
	alternatives, _ := security.([]any)
	return slices.ContainsFunc(alternatives, func(v any) bool {
		schemes, _ := v.(map[string]any)
		for name := range schemes {
			if c.schemes[name] == mutualTLS {
				return true
			}
		}
		return false
	})
}

func (c *checker) requirement(path string, v any) {
	schemes, ok := v.(map[string]any)
	if !ok {
		c.add(path, "it is "+kind(v), "write an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schemes)) {
		if _, there := c.schemes[name]; !there {
			c.add(join(path, name), "securitySchemes has no such scheme", "define it there, or remove it")
		}
		c.list(c.text)(join(path, name), schemes[name])
	}
}

func (c *checker) capabilities(path string, v any) {
	queue := c.matches(formats.queue, "write a protocol and its versions, such as rabbitmq:>=3.9")
	if c.v1 {
		queue = c.matches(formats.queueV1, "write one that ACS 01.00 lists, such as rabbitmq:3.11")
	}
	c.object(path, v, member{"streaming", true, c.truth, ""}, member{"notification", true, c.truth, ""},
		member{"messageQueue", true, c.list(queue), ""})
}

func (c *checker) skill(path string, v any) {
	c.object(path, v, member{"id", true, c.text, ""}, member{"name", true, c.text, ""},
		member{"description", true, c.text, ""}, member{"version", true, c.text, ""},
		member{"tags", true, c.list(c.text), ""},
		member{"examples", false, c.list(c.text), ""}, member{"inputModes", false, c.list(c.text), ""},
		member{"outputModes", false, c.list(c.text), ""})
}

func (c *checker) certificate(path string, v any) {
	names := func(path string, v any) {
		c.object(path, v,
			member{"dns", false, c.list(c.matches(formats.host, "write the name of a host")), ""},
			member{"ip", false, c.list(c.ip), ""})
	}
	c.object(path, v, member{"altNames", false, names, ""}, member{"requestedValidity", false, c.days, ""})
}

func (c *checker) text(path string, v any) {
	if s, ok := v.(string); !ok {
		c.add(path, "it is "+kind(v), "write a text")
	} else if strings.TrimSpace(s) == "" {
		c.add(path, "it is empty", "write a text")
	}
}

func (c *checker) truth(path string, v any) {
	if _, ok := v.(bool); !ok {
		c.add(path, "it is "+kind(v), "write true or false")
	}
}

// free accepts any object.
func (c *checker) free(path string, v any) {
	if _, ok := v.(map[string]any); !ok {
		c.add(path, "it is "+kind(v), "write an object")
	}
}

func (c *checker) time(path string, v any) {
	s, _ := v.(string)
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		c.add(path, "it is no time with an offset", "write it as 2025-03-15T16:30:00+08:00")
	}
}

func (c *checker) link(path string, v any) {
	s, _ := v.(string)
	if u, err := url.Parse(s); err != nil || u.Scheme == "" || u.Host == "" {
		c.add(path, "it is no URL", "write it with its scheme and host")
	}
}

func (c *checker) ip(path string, v any) {
	if s, _ := v.(string); net.ParseIP(s) == nil {
		c.add(path, "it is no IP address", "write one, or move a name to dns")
	}
}

func (c *checker) days(path string, v any) {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	if !ok || err != nil || f != math.Trunc(f) || f < 1 || f > MaxValidity {
		c.add(path, "it is no number of days", fmt.Sprintf("write 1 to %d", MaxValidity))
	}
}

func (c *checker) matches(format *regexp.Regexp, advice string) rule {
	return func(path string, v any) {
		if s, ok := v.(string); !ok {
			c.add(path, "it is "+kind(v), advice)
		} else if !format.MatchString(s) {
			c.add(path, fmt.Sprintf("it is %q", s), advice)
		}
	}
}

func (c *checker) oneOf(values ...string) rule {
	return func(path string, v any) {
		if s, ok := v.(string); !ok || !slices.Contains(values, s) {
			c.add(path, "it is "+shown(v), "write "+strings.Join(values, ", "))
		}
	}
}

// list returns a rule for lists with a rule for their values.
func (c *checker) list(of rule) rule {
	return func(path string, v any) {
		list, ok := v.([]any)
		if !ok {
			c.add(path, "it is "+kind(v), "write a list")
		}
		for i, v := range list {
			of(fmt.Sprintf("%s[%d]", path, i), v)
		}
	}
}

// each returns a rule for objects with any names, and a rule for their values.
func (c *checker) each(of rule) rule {
	return func(path string, v any) {
		object, ok := v.(map[string]any)
		if !ok {
			c.add(path, "it is "+kind(v), "write an object")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			of(join(path, name), object[name])
		}
	}
}

// join returns the path of a member.
func join(path, name string) string {
	switch {
	case name == "":
		return path + `[""]`
	case path == "":
		return name
	}
	return path + "." + name
}

// kind returns the kind of a value.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "an object"
}

// shown returns a text as it is, and the kind of another value.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return kind(v)
}
