// SPDX-License-Identifier: Apache-2.0

// Command a2a-go-10 is an agent and a client that speak A2A v1.0, over JSON-RPC, REST and gRPC, with a2a-go v2.4.0.
// With -compat both speak A2A v0.3 by way of that SDK.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
	"github.com/aip-gateway/aip-gateway/test/interop/internal/client"
)

func main() {
	log.SetFlags(0)
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "agent":
		flags := flag.NewFlagSet("agent", flag.ExitOnError)
		var f agent.Flags
		f.Register(flags)
		compat := flags.Bool("compat", false, "serve A2A v0.3 too, with a card for both versions")
		flags.Parse(os.Args[2:]) // ends the process at an error
		log.Fatal(serve(&f, *compat))
	case "client":
		client.Main(os.Args[2:], register)
	default:
		fmt.Fprintln(os.Stderr, "say what to be: agent or client")
		os.Exit(2)
	}
}
