// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/translate"
)

// Interface guards.
var (
	_ translate.Describer  = v03{}
	_ translate.Describer  = v1Client{}
	_ translate.Describer  = v1RESTClient{}
	_ translate.CardServer = v03Server{}
	_ translate.CardServer = v1Server{}
	_ translate.CardServer = v1RESTServer{}
)
