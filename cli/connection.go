// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// connectionFlags are the certificates of a call.
type connectionFlags struct {
	cert, key, ca, sender string
	partner, verify       string // the Partner meant, and the required content of its certificate
	find                  findFlags
	asked                 *atomic.Bool // whether a server has asked for the certificate; nil before a connection
}

func (f *connectionFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "cert", "", "the Leader's certificate (default: "+pkiDir+"/leader.pem, if it exists)")
	flags.StringVar(&f.key, "key", "", "its key (default: <cert>-key.pem)")
	flags.StringVar(&f.ca, "ca", "", "trusted roots, added to the system's (default: "+pkiDir+"/ca.pem, if it exists)")
	flags.StringVar(&f.sender, "sender", "", "the senderId (default: the AIC in --cert)")
	f.find.add(flags)
	flags.StringVar(&f.partner, "partner", "",
		"the AIC of the Partner that is meant (default: none, or the AIC that is called)")
	flags.StringVar(&f.verify, "verify", "",
		"what the Partner's certificate must show: aic, name or both (default: aic with --partner, otherwise name)")
}

// server returns the Partner meant by the flags.
func (f *connectionFlags) server() (identity.Server, error) {
	var aics []string
	if f.partner != "" {
		aics = []string{f.partner}
	}
	server, err := identity.ParseServer(f.verify, aics...)
	if err != nil {
		return server, fmt.Errorf("--partner and --verify: %w", err)
	}
	return server, nil
}

// client returns a client of the Partner at a URL.
func (f *connectionFlags) client(url string) (*leader.Client, error) {
	cert, err := f.certificate()
	if err != nil {
		return nil, err
	}
	server, err := f.server()
	if err != nil {
		return nil, err
	}
	if len(server.AICs) > 0 && !strings.HasPrefix(url, "https://") {
		return nil, errors.New("a Partner shows its AIC only with TLS: use an https:// URL, or leave --partner out")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	sender := f.sender
	config.GetClientCertificate = f.shows(cert)
	switch {
	case sender != "":
	case cert == nil:
		return nil, errors.New("there is no certificate to take the senderId from: " +
			"give --cert or --sender, or make a certificate with `caddy aip pki`")
	default:
		aic, err := identity.FromCertificate(cert.Leaf)
		if err != nil {
			return nil, fmt.Errorf("no senderId: %s Give --sender", detail(err))
		}
		sender = string(aic)
	}
	if config.RootCAs, err = f.roots(); err != nil {
		return nil, err
	}
	server.Require(config)
	client, err := leader.New(url, config)
	if err != nil {
		return nil, err
	}
	client.Sender = sender
	return client, nil
}

// shows returns a function to show a certificate to any server asking for one, also to one naming other CAs: the server
// then says that it does not trust the certificate, and not that there is none. cert is nil for none.
func (f *connectionFlags) shows(cert *tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	asked := new(atomic.Bool)
	f.asked = asked
	if cert == nil {
		cert = new(tls.Certificate)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return cert, nil
	}
}

// wasAsked reports whether the server has asked for the Leader's certificate, and so has seen it if there is one.
func (f *connectionFlags) wasAsked() bool { return f.asked != nil && f.asked.Load() }

// certificate returns the Leader's certificate, or nil if there is none.
func (f *connectionFlags) certificate() (*tls.Certificate, error) {
	path := f.cert
	if path == "" {
		if f.key != "" {
			return nil, errors.New("--key needs --cert")
		}
		if path = inPKI("leader.pem"); path == "" {
			return nil, nil
		}
	}
	key := f.key
	if key == "" {
		ext := filepath.Ext(path)
		key = strings.TrimSuffix(path, ext) + "-key" + ext
	}
	cert, err := tls.LoadX509KeyPair(path, key)
	if err != nil {
		return nil, fmt.Errorf("reading the Leader's certificate %s and its key %s: %w", path, key, err)
	}
	return &cert, nil
}

// roots returns the trusted roots; nil for those of the system.
func (f *connectionFlags) roots() (*x509.CertPool, error) {
	path := f.ca
	if path == "" {
		if path = inPKI("ca.pem"); path == "" {
			return nil, nil
		}
	}
	all, err := certfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, nil
}

// inPKI returns the path of a file made by `caddy aip pki`. It is empty if the file does not exist.
func inPKI(name string) string {
	path := filepath.Join(pkiDir, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// explainTLS adds to an error of a handshake what the user can do. asked is set if the server has asked for a
// certificate: the error of any other server says nothing about one.
func explainTLS(err error, withoutCertificate, asked bool) error {
	var unknown x509.UnknownAuthorityError
	other, isOther := errors.AsType[*identity.OtherServerError](err)
	switch {
	case isOther && other.AIC == "":
		return fmt.Errorf("%w If the Partner is known by its host name only, leave --partner out", err)
	case isOther:
		return fmt.Errorf("%w; check --partner, and whether another server answers at the URL", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; give the root that signs the Partner's certificate with --ca", err)
	case strings.Contains(err.Error(), "remote error: tls: certificate required"):
		return fmt.Errorf("%w; give the Leader's certificate with --cert, or make one with `caddy aip pki`", err)
	case strings.Contains(err.Error(), "remote error: tls: unknown certificate authority"):
		return fmt.Errorf("%w; the Partner does not trust the root that signs the Leader's certificate", err)
	case strings.Contains(err.Error(), "remote error: tls: expired certificate"):
		return fmt.Errorf("%w; the Leader's certificate has expired, or is not valid yet: renew it, or correct the clocks",
			err)
	case strings.Contains(err.Error(), "remote error: tls: bad certificate"):
		return fmt.Errorf("%w; the Partner trusts the root, but not the Leader's certificate: it is for servers only, or "+
			"revoked, or that is not known now, or it breaks another rule; the Partner's log says which", err)
	case strings.Contains(err.Error(), "remote error: tls: internal error"),
		strings.Contains(err.Error(), "remote error: tls: unrecognized name"):
		return fmt.Errorf("%w; the server has no certificate for the host in the URL: use the host name of the site, "+
			"not an IP address or another name", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%w; the server takes no TLS at this port: write http://, or use the port of the site with TLS",
			err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w; is the gateway running, at this host and port?", err)
	case closed(err) && !strings.Contains(err.Error(), `"https://`): // as http.Client quotes the URL
		return fmt.Errorf("%w; the server closed the connection without an answer: does its site take TLS? "+
			"Then write https://", err)
	case closed(err) && !asked:
		return fmt.Errorf("%w; the server closed the connection, and has not asked for a certificate: it may be being "+
			"started or stopped, or a proxy between may have cut it", err)
	case withoutCertificate && closed(err):
		// TLS 1.3 reports a missing certificate after the handshake, and the report can be lost.
		return fmt.Errorf("%w; the Partner closed the connection: it may require a certificate. "+
			"Give one with --cert, or make one with `caddy aip pki`", err)
	case closed(err):
		return fmt.Errorf("%w; the Partner closed the connection: it may not trust the Leader's certificate (another root, "+
			"expired, or for servers only), or a proxy between may have cut it", err)
	}
	return err
}

// closed reports whether the other end has closed a connection in use.
func closed(err error) bool {
	for _, sign := range []error{syscall.EPIPE, syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return strings.Contains(err.Error(), "client conn could not be established")
}

// detail returns the sentence of a *task.Error, and the text of any other error.
func detail(err error) string {
	var e *task.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}
