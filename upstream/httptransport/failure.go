// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/http1"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// broken returns the error of a request for an error of the connection.
func (x *exchange) broken(err error, when string) *task.Error {
	var dial dialError
	switch {
	case x.ctx.Err() != nil:
		return upstream.Ended(x.ctx)
	case errors.Is(err, http1.ErrSilent):
		return task.Errorf(task.AgentTimeout, "the agent was silent for %v", x.idleTimeout)
	case errors.Is(err, http1.ErrSlow):
		return task.Errorf(task.AgentTimeout, "the agent has begun an answer and not ended it within %v", x.idleTimeout)
	case errors.As(err, &dial):
		return DialFailed(err, "the agent cannot be reached")
	case IsTLSAlert(err):
		return upstream.Failed(task.AgentUnavailable, upstream.CertificateRefused, err,
			"the agent refuses the gateway's client certificate; the operator must check it")
	}
	return upstream.Failed(task.InvalidAgentResponse, upstream.Disconnected, err,
		"the connection to the agent broke %s", when)
}

// Explain implements upstream.Exchange.
func (x *exchange) Explain(err error) error {
	return Status{Code: x.status, MediaType: x.mediaType(), RetryAfter: x.retryAfter}.Explain(err)
}

// Status is the content of an answer's head.
type Status struct {
	Code       int
	MediaType  string // without parameters
	RetryAfter string // the field Retry-After; empty for none
}

// Explain adds the words of HTTP to an error. An error read by the codec in the answer stands for itself.
func (s Status) Explain(err error) error {
	kind, status := task.KindOf(err), s.Code
	if status >= 300 && errors.Is(err, translate.ErrInformal) {
		kind = task.InvalidAgentResponse
	}
	if kind != task.InvalidAgentResponse && kind != task.Internal {
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		// Not AuthorizationFailed: the Leader would take it for its own.
		return upstream.Failed(task.InvalidAgentResponse, upstream.CredentialsRefused, err,
			"the agent refuses the gateway's credentials (HTTP %d); the operator must check them", status)
	}
	if kind != task.InvalidAgentResponse {
		return err
	}
	media := s.MediaType
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		wait := retryAfter(s.RetryAfter, time.Now())
		return task.Errorf(task.AgentUnavailable, "the agent takes no requests now (HTTP %d)", status).
			WithCause(&upstream.Error{Reason: upstream.Overloaded, RetryAfter: wait, Err: err})
	case status >= 300 && status < 400:
		return upstream.Failed(kind, upstream.Redirected, err,
			"the agent redirects (HTTP %d), which is not followed; the operator must give its final URL", status)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone:
		return upstream.Failed(kind, upstream.NoAgent, err, "no agent answers at the agent's URL (HTTP %d, %s)",
			status, media)
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		return upstream.Failed(kind, upstream.ProxyFailed, err,
			"a proxy in front of the agent does not reach it (HTTP %d, %s)", status, media)
	}
	reason := upstream.NoReason
	switch {
	case status == http.StatusInternalServerError || status == http.StatusNotImplemented:
		reason = upstream.ServerFailed
	case status >= 400:
		reason = upstream.Rejected
	}
	if e, ok := errors.AsType[*task.Error](err); ok && e.Detail != "" {
		return upstream.Failed(kind, reason, e.Err, "%s (HTTP %d, %s)", strings.TrimSuffix(e.Detail, "."), status,
			media)
	}
	return fmt.Errorf("HTTP %d, %s: %w", status, media, err)
}

// retryAfter reads a Retry-After field (RFC 9110, section 10.2.3), in seconds or as a date. It returns 0 if there is no
// readable one, and for a past time.
func retryAfter(field string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(field, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(field)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
