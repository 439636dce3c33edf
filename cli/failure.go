// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// explain adds to an error what it means, and the command to continue. It leaves an error in the Partner's answer
// unchanged.
func (c *leaderCall) explain(err error) error {
	var refused *leader.Error
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded) && c.streamed:
		return fmt.Errorf("the stream did not end within %s; see --timeout%s", c.timeout, c.resume(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s; see --timeout%s", c.wait(), c.resume(err))
	}
	return fmt.Errorf("%w%s", c.connection.explain(err), c.resume(err))
}

// resume returns lines with the command to continue after an error. They are empty if there is nothing to continue.
func (c *leaderCall) resume(err error) string {
	if unsent(err) && c.last == 0 {
		return ""
	}
	started := c.call.Message.Command == task.Start
	line := func(why string, args ...string) string {
		args = append(args, "--task", c.call.Message.TaskID)
		if c.streamed && c.last > 0 {
			args = append(args, "--after", strconv.FormatUint(c.last, 10))
		}
		return "\n" + why + ":\n  " + c.commandLine(args)
	}
	switch {
	case c.streamed && started && c.last == 0:
		return line("if the task was started, this prints its events", string(task.ReStream))
	case c.streamed:
		return line("this resumes the stream", string(task.ReStream))
	case started:
		return line("if the task was started, this prints it", string(task.Get))
	case c.call.Message.Command == task.Continue:
		return line("this prints the task, with the messages that the Partner has received", string(task.Get))
	}
	return ""
}

// commandLine returns a command line of caddy aip call with the URL and the connection of this call.
func (c *leaderCall) commandLine(args []string) string {
	words := append([]string{os.Args[0], "aip", "call", c.url}, args...)
	c.cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "cert", "key", "ca", "sender", "partner", "verify", "dialect":
			words = append(words, "--"+flag.Name, flag.Value.String())
		case "json":
			words = append(words, "--json")
		case "follow":
			if args[0] == string(task.ReStream) {
				words = append(words, "--follow")
			}
		}
	})
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote returns a word as a shell takes it.
func quote(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(clean(word), "'", `'\''`) + "'"
}

// meanings are the meanings of HTTP statuses other than 200 at the URL of a Partner.
var meanings = map[int]string{
	http.StatusBadRequest: "the server cannot read the request: is the URL http:// where the server takes TLS, " +
		"or is something before the gateway that changes requests?",
	http.StatusUnauthorized: "something before the gateway wants other credentials: " +
		"a Partner checks certificates only",
	http.StatusForbidden: "something before the gateway refuses the call: " +
		"a Partner answers such errors with HTTP 200",
	http.StatusNotFound:         "is aip_gateway mounted at this URL?",
	http.StatusMethodNotAllowed: "is aip_gateway mounted at this URL?",
	http.StatusMisdirectedRequest: "the server has no site of this host name for this connection: " +
		"use the site's host name in the URL, not an IP address or another name",
	http.StatusBadGateway: "a proxy before the gateway does not reach it, " +
		"or another handler answers at this URL",
	http.StatusServiceUnavailable: "a proxy before the gateway does not reach it, or it is being started or stopped",
	http.StatusGatewayTimeout:     "a proxy before the gateway waits less long than the task takes; use stream",
}

// authenticationRequired is the code of AIP for a Leader without a proof of its identity.
const authenticationRequired = -32008

// advice returns a line with the remedy for an error in a Partner's answer; empty for most.
func (f *connectionFlags) advice(e *leader.Error) string {
	if e.Code != authenticationRequired {
		return ""
	}
	if cert, err := f.certificate(); cert == nil && err == nil {
		return "\ngive the Leader's certificate with --cert, or make one with `caddy aip pki`"
	}
	if f.wasAsked() {
		return "" // the site has seen it, and the error has the reason of its refusal
	}
	return `
the call has a certificate, but the site has not asked for it; its operator adds:
	tls {
		client_auth {
			mode require_and_verify
			trust_pool file <ca.pem>
		}
	}`
}

// maxBodyShown is the largest printed part of the body of an unexpected answer, in bytes.
const maxBodyShown = 500

// explain adds what the user can do to an error of a connection, or of an answer not from a Partner.
func (f *connectionFlags) explain(err error) error {
	var status *leader.StatusError
	var format *leader.FormatError
	switch {
	case errors.As(err, &status):
		meaning, known := meanings[status.Status]
		switch {
		case known:
		case status.Status >= 300 && status.Status < 400:
			meaning = "the server redirects, and a Leader does not follow: use the URL of the Partner itself"
		default:
			meaning = "a Partner answers every command with HTTP 200: is this URL that of aip_gateway?"
		}
		return fmt.Errorf("%w; %s%s", err, meaning, excerpt(status.Body))
	case errors.As(err, &format):
		return fmt.Errorf("%w; a proxy or another handler answers: is aip_gateway mounted at this URL?%s",
			err, excerpt(format.Body))
	case errors.Is(err, leader.ErrEmpty):
		return fmt.Errorf("%w: the server has a site at this port, but nothing is mounted at this host and path; "+
			"correct the URL, or the matcher of aip_gateway", err)
	}
	cert, unreadable := f.certificate()
	return explainTLS(err, cert == nil && unreadable == nil, f.wasAsked())
}

// excerpt returns the beginning of the body of an unexpected answer, on lines of its own; empty for an empty body.
func excerpt(body []byte) string {
	text := strings.TrimSpace(string(body[:min(len(body), maxBodyShown)]))
	if text == "" {
		return ""
	}
	return "\n  " + strings.ReplaceAll(clean(strings.ToValidUTF8(text, "\ufffd")), "\n", "\n  ")
}

// unsent reports whether an error means that no Partner has got the command: nothing was connected, a side has refused
// the other's certificate, or another server has answered.
func unsent(err error) bool {
	var status *leader.StatusError
	if errors.As(err, &status) || errors.Is(err, leader.ErrEmpty) {
		return true
	}
	if of, ok := errors.AsType[*net.OpError](err); ok && (of.Op == "dial" || of.Op == "remote error") {
		return true
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, other := errors.AsType[*identity.OtherServerError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return untrusted || other || plain
}
