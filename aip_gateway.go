// SPDX-License-Identifier: Apache-2.0

// Package aipgateway adds the AIP gateway to a Caddy build: xcaddy build --with github.com/aip-gateway/aip-gateway.
package aipgateway

import (
	_ "github.com/aip-gateway/aip-gateway/caddymodule" // registers the modules
	_ "github.com/aip-gateway/aip-gateway/cli"         // registers the commands
)
