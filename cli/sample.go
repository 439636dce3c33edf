// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

// serveGrace is the time for requests to end after a server is stopped.
const serveGrace = 3 * time.Second

func sampleAgentCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "sample-agent [--listen <address>]",
		Short: "Runs a sample agent behind the gateway",
		Long: `
Runs a sample agent that speaks A2A v0.1. It needs no model and no network. The
first word of a message is its command:

  stream N [MS]   a product in N pieces, one every MS milliseconds
  slow SECONDS    works for this time
  ask             asks for a colour
  fail, reject    fails, or rejects the task
  file, data      a product with a file, or with structured data
  two             two products

It repeats all other messages. It ends on SIGINT and SIGTERM.
`,
		Example: `  $ caddy aip sample-agent
  $ caddy aip sample-agent --listen 127.0.0.1:9102`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9101", "the address to listen on; port 0 chooses one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
		if err != nil {
			return err
		}
		url := "http://" + l.Addr().String()
		_, err = fmt.Fprintf(cmd.OutOrStdout(),
			"The sample agent speaks A2A v0.1 at %s\n\nIn the Caddyfile: aip_gateway a2a/legacy %s\n", url, url)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		return serveSample(ctx, l)
	}
	return cmd
}

// serveSample serves a sample agent on l until ctx is done, and all its turns and requests have ended.
func serveSample(ctx context.Context, l net.Listener) error {
	agent := legacyagent.New(legacyagent.Options{})
	server := &http.Server{Handler: agent, ReadHeaderTimeout: 10 * time.Second}
	return serve(ctx, l, server, agent.Close) // requests wait for the agent's turns, so the turns end first
}

// serve serves requests on l until ctx is done. Then it calls end, and waits for the rest of the requests.
func serve(ctx context.Context, l net.Listener, server *http.Server, end func() error) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return errors.Join(err, end())
	case <-ctx.Done():
	}
	err := end()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		err = errors.Join(err, server.Close())
	}
	<-served
	return err
}
