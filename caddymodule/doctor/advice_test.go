// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// A log line about an error that only an operator can mend names the option to check.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // a part of the advice; empty for none
	}{
		{upstream.Failed(task.InvalidAgentResponse, upstream.CredentialsRefused, nil, "refused"), "header_up"},
		{fmt.Errorf("wrapped: %w", upstream.Failed(task.AgentUnavailable, upstream.CertificateRefused, nil, "refused")),
			"client_cert"},
		{upstream.Failed(task.AgentUnavailable, upstream.IdentityRefused, nil, "refused"), "identity and roots"},
		{task.Errorf(task.AuthenticationRequired, "refused").WithCause(identity.ErrNotVerified), "client_auth"},
		{task.Errorf(task.AuthenticationRequired, "refused").WithCause(identity.ErrNoCertificate), "require_and_verify"},
		{gateway.ErrCardSigned, "signatures in card"},
		{gateway.ErrInvalidACS, "each mistake"},
		{gateway.ErrOtherACS, "register a new version"},
		{upstream.Failed(task.AgentUnavailable, upstream.Unreachable, nil, "refused"), ""},
		{task.Errorf(task.Internal, "refused"), ""},
	} {
		var out bytes.Buffer
		log := slog.New(Advising(slog.NewTextHandler(&out, nil), nil)).With("task", "t1")
		log.Warn("the agent failed", "other", 1, "reason", c.err)
		_, advice, found := strings.Cut(out.String(), "advice=")
		if found != (c.want != "") || !strings.Contains(advice, c.want) || !strings.Contains(out.String(), "task=t1") {
			t.Errorf("%v: the log has %s", c.err, out.String())
		}
		if got := Advised(c.err).Error(); !strings.HasPrefix(got, c.err.Error()) || !strings.Contains(got, c.want) {
			t.Errorf("%v: the error is %s", c.err, got)
		}
	}
}

// Each reason that an operator must act on has advice.
func TestAdviceIsComplete(t *testing.T) {
	for reason := upstream.CredentialsRefused; reason <= upstream.DialectUnknown; reason++ {
		if adviceByReason[reason] == "" {
			t.Errorf("%s: there is no advice", reason)
		}
	}
}
