// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/leader"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

const headerTime = 10 * time.Second

// misbehave runs a Partner that misbehaves until the command is interrupted, and reports what the Leader sent.
func misbehave(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	f := flag.NewFlagSet("aipconform leader", flag.ContinueOnError)
	f.SetOutput(stderr)
	listen := f.String("listen", "127.0.0.1:0", "the `address` of the Partner")
	cert := f.String("cert", "", "its certificate, a `file`: by HTTPS")
	key := f.String("key", "", "its key, a `file`")
	ca := f.String("ca", "", "a `file` with the authorities of Leaders: then a Leader needs a certificate")
	reports := f.String("json", "", "write the report as JSON to a `file`; - for the standard output")
	if err := f.Parse(args); err != nil {
		return 0, err
	}
	if f.NArg() > 0 {
		return 0, fmt.Errorf("%s is one argument too many", f.Arg(0))
	}
	config, err := serverTLS(*cert, *key, *ca)
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return 0, err
	}
	url := "http://" + listener.Addr().String()
	if config != nil {
		url = "https://" + listener.Addr().String()
		listener = tls.NewListener(listener, config)
	}
	partner := leader.New()
	server := &http.Server{Handler: partner, ReadHeaderTimeout: headerTime}
	var serving sync.WaitGroup
	serving.Go(func() { err = server.Serve(listener) })
	for _, fault := range leader.Faults() {
		fmt.Fprintf(stdout, "%s/%s/rpc\t%s\n", url, fault.Name, fault.Does)
	}
	fmt.Fprintf(stdout, "%s/right/rpc\tnothing is wrong\n%s/report\twhat the Leader sent\n", url, url)
	<-ctx.Done()
	server.Close()
	serving.Wait()
	partner.Close()
	if err != http.ErrServerClosed {
		return 0, err
	}
	return exitPassed, writeReports(stdout, *reports, partner.Reports())
}

func writeReports(stdout io.Writer, file string, all []leader.Report) error {
	if file == "" {
		return leader.Table(stdout, all)
	}
	return save(stdout, file, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	})
}

// serverTLS returns the TLS of the Partner; nil without a certificate.
func serverTLS(cert, key, ca string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if ca != "" {
		if config.ClientCAs, err = wire.LoadCA(ca); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}
