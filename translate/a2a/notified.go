// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/translate"
)

// Interface guards.
var (
	_ translate.StateFilter = legacyServer{}
	_ translate.StateFilter = v03Server{}
	_ translate.StateFilter = v1Server{}
	_ translate.StateFilter = v1RESTServer{}
)
