// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// How a connection to the servers is watched and made again. A server that is silent, as behind a partition, is noticed
// within pingEvery times (unanswered + 1).
const (
	pingEvery     = time.Second
	unanswered    = 2
	dialTimeout   = 2 * time.Second
	reconnectWait = 100 * time.Millisecond // and a random time up to as much more
)

// connection returns the options of connections to the servers, all but those that log. It reads the files that the
// settings name. Its errors quote no secret.
func (s *Store) connection() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("aip-gateway " + s.Node),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(unanswered), nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.IgnoreAuthErrorAbort(), // it may be mended at the servers
		nats.ReconnectBufSize(-1),   // nothing is sent later than it was meant
		nats.PermissionErrOnSubscribe(true),
	}
	login, err := s.login()
	if err != nil {
		return nil, err
	}
	opts = append(opts, login...)
	t, err := s.TLS.config()
	if err != nil {
		return nil, err
	}
	if t != nil {
		opts = append(opts, nats.Secure(t))
	}
	return opts, nil
}

// login returns how the gateway logs in.
func (s *Store) login() (opts []nats.Option, err error) {
	repl, given := caddy.NewReplacer(), []string(nil)
	if s.User != "" || s.Password != "" {
		given = append(given, "user")
		if s.User == "" || s.Password == "" {
			return nil, errors.New("user needs a name and a password")
		}
		for _, secret := range []struct{ of, text string }{{"user", s.User}, {"the password of user", s.Password}} {
			if _, err := conf.Replace(repl, secret.text); err != nil {
				return nil, fmt.Errorf("%s %w", secret.of, err)
			}
		}
		opts = append(opts, nats.UserInfoHandler(func() (string, string) {
			return replaced(s.User), replaced(s.Password)
		}))
	}
	if s.Token != "" {
		given = append(given, "token")
		if _, err := conf.Replace(repl, s.Token); err != nil {
			return nil, fmt.Errorf("token %w", err)
		}
		opts = append(opts, nats.TokenHandler(func() string { return replaced(s.Token) }))
	}
	if s.NKey != "" {
		given = append(given, "nkey")
		file, err := conf.FileName(repl, s.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey: %w", err)
		}
		key, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, fmt.Errorf("nkey: %s holds no seed of an NKey of a user that can be read; make one with: "+
				"nk -gen user", file)
		}
		opts = append(opts, key)
	}
	if s.Credentials != "" {
		given = append(given, "credentials")
		file, err := conf.FileName(repl, s.Credentials)
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		if err := checkCredentials(file); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		opts = append(opts, nats.UserCredentials(file))
	}
	if len(given) > 1 {
		return nil, fmt.Errorf("%s are given; the gateway logs in by one of them", strings.Join(given, " and "))
	}
	return opts, nil
}

// replaced is replaceAll for what was checked before: a file may have become unreadable since, and then the servers
// refuse the connection.
func replaced(text string) string {
	text, _ = conf.Replace(caddy.NewReplacer(), text)
	return strings.TrimSpace(text)
}

// checkCredentials says what a file of credentials lacks. It quotes nothing of it.
func checkCredentials(file string) error {
	text, err := conf.ReadFile(caddy.NewReplacer(), file)
	switch {
	case err != nil:
		return err
	case !strings.Contains(string(text), "-BEGIN NATS USER JWT-"),
		!strings.Contains(string(text), "-BEGIN USER NKEY SEED-"):
		return fmt.Errorf("%s does not hold the JWT of a user and the seed of its key; make it with: "+
			"nsc generate creds", file)
	}
	return nil
}

// config returns the TLS configuration of connections to the servers; nil for that of their URLs.
func (t *NATSTLS) config() (*tls.Config, error) {
	if len(t.CA) == 0 && t.Cert == "" && t.Key == "" && t.ServerName == "" {
		return nil, nil
	}
	repl := caddy.NewReplacer()
	roots, err := certfile.ReadPool(repl, t.CA)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: roots, ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	return c, certfile.Present(c, repl, t.Cert, t.Key)
}

// dial connects to one of the servers. The connection is made again for as long as it is not closed.
func (s *Store) dial(log *slog.Logger) (*nats.Conn, error) {
	opts, err := s.connection()
	if err != nil {
		return nil, err
	}
	return nats.Connect(strings.Join(s.URLs, ","), append(opts,
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			if !c.IsClosed() {
				// What to do: see docs/cluster.md#when-something-is-wrong.
				log.Warn("the connection to the NATS servers is lost; it is made again", "error", err)
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			log.Debug("a NATS server cannot be reached", "error", err)
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			log.Info("the connection to the NATS servers is made again", "server", c.ConnectedAddr())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, of *nats.Subscription, err error) {
			subject := ""
			if of != nil {
				subject = of.Subject
			}
			log.Warn("a NATS server refused something, or was not read fast enough", "subject", subject, "error", err)
		}))...)
}

// serversRefuse reports whether servers refuse the gateway, which is not mended by waiting.
func serversRefuse(err error) bool {
	for _, of := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrNkeysNotSupported,
		nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrTokenAlreadySet} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// explainDial returns what an error of dial means, and what to do.
func (s *Store) explainDial(err error) error {
	switch {
	case serversRefuse(err):
		return fmt.Errorf("the NATS servers refuse the gateway (%w); check user, token, nkey or credentials, and what the "+
			"servers have for them", err)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("the NATS servers cannot be reached (%s); start them, or correct their URLs: %s",
			strings.TrimPrefix(err.Error(), "nats: "), strings.Join(s.URLs, " "))
	}
	return fmt.Errorf("there is no connection to the NATS servers: %w", err)
}
