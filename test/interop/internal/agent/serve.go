// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// KeyHeader is where a caller's API key is looked for.
const KeyHeader = "X-API-Key"

// Flags are what every agent is started with.
type Flags struct {
	Address string // host:port to listen on
	URL     string // what the URLs in the card begin with, without a slash at the end
	Key     string // the API key that is asked for, or empty
}

// Register adds the flags to a set.
func (f *Flags) Register(flags *flag.FlagSet) {
	flags.StringVar(&f.Address, "addr", "127.0.0.1:0", "`host:port` to listen on")
	flags.StringVar(&f.URL, "url", "", "what the `URL`s in the card begin with (default http://host:port)")
	flags.StringVar(&f.Key, "api-key", "", "the `key` that callers must send as "+KeyHeader)
}

// Listen opens the address, and fills in Address and URL where they are left open.
func (f *Flags) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", f.Address)
	if err != nil {
		return nil, err
	}
	f.Address = l.Addr().String()
	if f.URL == "" {
		f.URL = "http://" + f.Address
	}
	f.URL = strings.TrimSuffix(f.URL, "/")
	return l, nil
}

// Serve says on stdout that the agent is ready, and serves until the listener breaks.
func (f *Flags) Serve(l net.Listener, handler http.Handler) error {
	fmt.Println("listening on", f.Address)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // for gRPC
	return (&http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, Protocols: protocols}).Serve(l)
}

// Guard asks for the API key, if there is one, for everything but the card.
func (f *Flags) Guard(next http.Handler) http.Handler {
	if f.Key == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		right := subtle.ConstantTimeCompare([]byte(r.Header.Get(KeyHeader)), []byte(f.Key)) == 1
		if !right && !strings.HasPrefix(r.URL.Path, "/.well-known/") {
			http.Error(w, KeyHeader+" is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
