// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// The versions of ACPs with an ACS by Make.
const (
	V0100 = "01.00"
	V0201 = "02.01"
	V0202 = "02.02"
)

// MaxSize is the largest size of an ACS to read, in bytes.
const MaxSize = 1 << 20

// Placeholder stands in a URL for the AIC. A registry assigns the AIC.
const Placeholder = "{AIC}"

// Unassigned stands for the AIC in an ACS to be registered: a registry demands a text there, and replaces it.
const Unassigned = "unassigned"

// mtls is the name of the security scheme of a Partner.
const mtls = "mtls"

// The values of members.
const (
	mutualTLS = "mutualTLS" // the type of a scheme
	jsonrpc   = "JSONRPC"   // a transport of an endpoint
	amqp      = "AMQP"      // another one: the inbox of groups
)

// VersionOf returns the version of the ACS of an agent with an AIC. The AICs of ACPs 2 have dots.
func VersionOf(aic string) string {
	if strings.Contains(aic, ".") {
		return V0201
	}
	return V0100
}

// Document is an ACS of a Partner.
type Document struct {
	AIC              string            `json:"aic"`
	Active           bool              `json:"active"`
	LastModifiedTime string            `json:"lastModifiedTime"`
	ProtocolVersion  string            `json:"protocolVersion"`
	Name             string            `json:"name"`
	Description      string            `json:"description"`
	Version          string            `json:"version"`
	IconURL          string            `json:"iconUrl,omitempty"`
	DocumentationURL string            `json:"documentationUrl,omitempty"`
	Provider         Provider          `json:"provider"`
	SecuritySchemes  map[string]Scheme `json:"securitySchemes"`
	EndPoints        []EndPoint        `json:"endPoints"`
	Capabilities     Capabilities      `json:"capabilities"`
	InputModes       []string          `json:"defaultInputModes"`
	OutputModes      []string          `json:"defaultOutputModes"`
	Skills           []Skill           `json:"skills"`
	Certificate      *Certificate      `json:"certificate,omitempty"` // since 02.00
}

// Provider is the provider of an agent.
type Provider struct {
	CountryCode  string `json:"countryCode"`
	Organization string `json:"organization,omitempty"`
	Department   string `json:"department,omitempty"`
	URL          string `json:"url,omitempty"`
	License      string `json:"license,omitempty"`
}

// Scheme is a way for callers to authenticate themselves.
type Scheme struct {
	Type               string `json:"type"`
	CAChallengeBaseURL string `json:"x-caChallengeBaseUrl,omitempty"`
}

// EndPoint is the place of an agent.
type EndPoint struct {
	URL       string                `json:"url"`
	Transport string                `json:"transport"`
	Security  []map[string][]string `json:"security,omitempty"` // one of them; of one, all schemes
}

// Capabilities are the abilities of an agent beside answering.
type Capabilities struct {
	Streaming    bool     `json:"streaming"`
	Notification bool     `json:"notification"`
	MessageQueue []string `json:"messageQueue"`
}

// Skill is one skill of an agent.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
	InputModes  []string `json:"inputModes,omitempty"`
	OutputModes []string `json:"outputModes,omitempty"`
}

// Certificate is the contents of the agent's certificates requested from the CA.
type Certificate struct {
	AltNames          AltNames `json:"altNames,omitzero"`
	RequestedValidity int      `json:"requestedValidity,omitempty"` // in days
}

// AltNames are the names in a certificate beside the AIC.
type AltNames struct {
	DNS []string `json:"dns,omitempty"`
	IP  []string `json:"ip,omitempty"`
}

// beijing is the time zone recommended in the specification.
var beijing = time.FixedZone("", 8*60*60)

// At sets the time of the last change of the content.
func (d *Document) At(t time.Time) { d.LastModifiedTime = t.In(beijing).Format(time.RFC3339) }

// Encode returns the document as JSON.
func (d *Document) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		panic(err) // a Document has only texts, numbers, lists and maps of them
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
