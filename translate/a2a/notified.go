// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/translate"
)

// Interface guards.
var (
	_ translate.Selective = legacyServer{}
	_ translate.Selective = v03Server{}
	_ translate.Selective = v1Server{}
	_ translate.Selective = v1RESTServer{}
)
