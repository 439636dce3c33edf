// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/aip-gateway/aip-gateway/acps/registry"
)

// The dialects that an agent may speak.
const (
	V1 = "aip"   // AIP v01
	V2 = "aip/2" // AIP v02
)

// Agent is one that was found.
type Agent struct {
	AIC     string
	URL     string // of all methods, https
	Dialect string // V1 or V2
	Source  string // which says so
	ACS     json.RawMessage
}

const (
	jsonrpc     = "JSONRPC" // the transport of AIP: one URL for all methods
	placeholder = "{AIC}"
	maxURL      = 2048 // bytes
)

// Read reads where an agent is from its ACS. Errors are of the kinds of package registry.
func Read(aic string, acs json.RawMessage) (Agent, error) {
	var doc struct {
		AIC             string `json:"aic"`
		Active          *bool  `json:"active"`
		ProtocolVersion string `json:"protocolVersion"`
		EndPoints       []struct {
			URL       string `json:"url"`
			Transport string `json:"transport"`
		} `json:"endPoints"`
	}
	malformed := func(format string, args ...any) (Agent, error) {
		return Agent{}, &registry.Error{Kind: registry.Malformed, Detail: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(acs, &doc); err != nil {
		return Agent{}, &registry.Error{Kind: registry.Malformed, Cause: err}
	}
	switch {
	case !strings.EqualFold(doc.AIC, aic):
		return malformed("the ACS is of another agent")
	case doc.Active == nil || !*doc.Active:
		return Agent{}, &registry.Error{Kind: registry.Inactive}
	}
	dialect := DialectOf(aic, doc.ProtocolVersion)
	if dialect == "" {
		return malformed("the ACS has a protocolVersion that is not known; 01 and 02 are")
	}
	for _, e := range doc.EndPoints {
		if e.Transport != jsonrpc {
			continue
		}
		if u, err := CheckURL(strings.ReplaceAll(e.URL, placeholder, aic)); err == nil {
			return Agent{AIC: aic, URL: u, Dialect: dialect, ACS: acs}, nil
		}
	}
	return malformed("none of the %d endpoints in the ACS has the transport JSONRPC and an https URL",
		len(doc.EndPoints))
}

// DialectOf returns the dialect of an agent by the protocolVersion of its ACS; where that is empty, by the form of the
// AIC, since those of ACPs 2 have dots. It is empty for a version that is not known.
func DialectOf(aic, protocolVersion string) string {
	switch major, _, _ := strings.Cut(protocolVersion, "."); {
	case major == "01", protocolVersion == "" && !strings.Contains(aic, "."):
		return V1
	case major == "02", protocolVersion == "":
		return V2
	}
	return ""
}

// CheckURL checks the URL of an agent: https, since only then it shows its AIC. It returns it in one form.
func CheckURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxURL || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return "", fmt.Errorf("%q is no https URL of an agent, without a user and a #", s)
	}
	return u.String(), nil
}
