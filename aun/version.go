// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// Version is the version of the protocol in both modes.
const Version = "1.0"

// peerVersions are the versions of peer mode, the highest first: the texts print both for the same thing.
var peerVersions = []string{"1.0", "0.1"}

// CheckVersion returns an error if a client of gateway mode does not speak Version. protocol is its parameter of
// auth.connect.
func CheckVersion(protocol gjson.Result) error {
	_, err := commonVersion(protocol, []string{Version})
	return err
}

// commonVersion returns the highest common version of both ends. A client names one version, or the lowest and the
// highest; an omitted one is no limit. versions are those of this end, the highest first.
func commonVersion(protocol gjson.Result, versions []string) (string, error) {
	lowest, highest := protocol.Get("min").String(), protocol.Get("max").String()
	if protocol.Type == gjson.String {
		lowest, highest = protocol.Str, protocol.Str
	}
	for _, v := range versions {
		if lowest <= v && (highest == "" || v <= highest) {
			return v, nil
		}
	}
	return "", &Error{Code: codes.Version, Message: "No version of the protocol is common to both ends",
		Data: mustJSON(map[string]any{
			"server_range": map[string]string{"min": versions[len(versions)-1], "max": versions[0]},
			"client_range": map[string]string{"min": lowest, "max": highest},
		})}
}
