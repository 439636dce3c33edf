// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/legacy"
	v03 "github.com/aip-gateway/aip-gateway/translate/a2a/v03"
	v1 "github.com/aip-gateway/aip-gateway/translate/a2a/v1"
)

// The sides towards agents.

// Legacy returns a2a/legacy: A2A v0.1.
func Legacy() translate.Client { return legacy.Client() }

// V03 returns a2a/0.3: A2A 0.2 and 0.3 over JSON-RPC.
func V03() translate.Client { return v03.Client() }

// V1 returns a2a/1.0: A2A 1.0 over JSON-RPC.
func V1() translate.Client { return v1.Client() }

// V1REST returns a2a/1.0-rest: A2A 1.0 over HTTP+JSON. It is a translate.Binder.
func V1REST() translate.Client { return v1.RESTClient() }

// V1GRPC returns a2a/1.0-grpc: A2A 1.0 over gRPC. It is a translate.StatusReader.
func V1GRPC() translate.Client { return v1.GRPCClient() }

// The sides towards callers. A2A has no state for a task that awaits completion. With confirm callers see it as
// input-required, without it is completed.

// LegacyServer returns a2a/legacy. Without confirm, callers may continue a completed task, as in v0.1.
func LegacyServer(confirm bool) translate.Server { return legacy.Server(confirm) }

// V03Server returns a2a/0.3.
func V03Server(confirm bool) translate.Server { return v03.Server(confirm) }

// V03RESTServer returns a2a/0.3-rest: A2A 0.3 over HTTP+JSON.
func V03RESTServer(confirm bool) translate.Server { return v03.RESTServer(confirm) }

// V1Server returns a2a/1.0. It is a translate.Lister.
func V1Server(confirm bool) translate.Server { return v1.Server(confirm) }

// V1RESTServer returns a2a/1.0-rest. It is a translate.Lister and a translate.Statuser.
func V1RESTServer(confirm bool) translate.Server { return v1.RESTServer(confirm) }

// V1GRPCServer returns a2a/1.0-grpc. It is a translate.Lister and a translate.Transcoder.
func V1GRPCServer(confirm bool) translate.Server { return v1.GRPCServer(confirm) }
