// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/identity"
)

// The concluding methods of a login.
const (
	connectMethod = "auth.connect"
	confirmMethod = "peer.confirm"
)

// logsIn reports whether a client is logged in when a method has succeeded.
func logsIn(method string) bool { return method == connectMethod || method == confirmMethod }

// before executes a method of a client before its login. closing is the status with which the connection is closed
// after an error; 0 keeps it open.
func (s *Session) before(r *request) (result []byte, closing aun.CloseCode, err error) {
	steps := proves[r.Method]
	if steps > 0 {
		if err := s.front.config.Connections.attempt(s.origin); err != nil {
			return nil, aun.CloseTryLater, err // a new connection costs the client more than a request
		}
	}
	if result, closing, err = s.step(r); err == nil && steps > 1 {
		s.front.config.Connections.proven(s.origin, steps-1)
	}
	return result, closing, err
}

// proves are the methods for which something is verified or signed. One that concludes a login has one more than the
// attempts of a login, itself included.
var proves = map[string]int{
	"auth.aid_login1": 1, "auth.aid_login2": 3, connectMethod: 2, "auth.refresh_token": 1,
	"peer.hello": 1, confirmMethod: 3,
}

// step is before, but for the limit.
func (s *Session) step(r *request) (result []byte, closing aun.CloseCode, err error) {
	authority := s.front.config.Authority
	if s.mode == peerMode {
		s.steps.Lock()
		defer s.steps.Unlock()
		switch r.Method {
		case "initialize":
			result, err = s.peer.Initialize(r.Params)
		case "peer.hello":
			result, err = s.peer.Hello(r.Params)
		case confirmMethod:
			var proof aun.Proof
			if result, proof, err = s.peer.Confirm(r.Params); err == nil {
				closing, err = s.enter(proof)
			}
		default:
			err = errNotLoggedIn
		}
		if err != nil && closing == 0 {
			closing = closeCode(err)
		}
		return result, closing, err
	}
	switch r.Method {
	case "auth.aid_login1":
		result, err = authority.Login1(r.Params)
	case "auth.aid_login2":
		result, err = authority.Login2(r.Params)
	case "auth.refresh_token":
		result, err = s.refresh(r)
	case connectMethod:
		return s.connect(r.Params)
	case "auth.create_aid", "auth.request_cert", "auth.renew_cert", "auth.rekey", "auth.download_cert":
		return nil, 0, aun.Errorf(codes.MethodNotFound, "This gateway issues no certificates")
	case "meta.ping":
		return ping(), 0, nil
	default:
		return nil, aun.CloseAuthFailed, errNotLoggedIn
	}
	if err != nil {
		closing = closeCode(err)
	}
	return result, closing, err
}

var errNotLoggedIn = aun.Errorf(codes.NotInitialized, "The method needs a login; see auth.connect")

// closeCode returns the status for closing a connection after an error of a login.
func closeCode(err error) aun.CloseCode {
	if e, ok := err.(*aun.Error); ok {
		switch e.Code {
		case codes.CertificateInvalid, codes.SignatureInvalid, codes.AuthFailed, codes.TokenExpired,
			codes.NotInitialized:
			return aun.CloseAuthFailed
		case codes.Version:
			return aun.CloseProtocol
		}
	}
	return 0
}

// connect is auth.connect.
func (s *Session) connect(params gjson.Result) (result []byte, closing aun.CloseCode, err error) {
	s.mu.Lock()
	nonce := s.nonce
	s.nonce = ""
	s.mu.Unlock()
	if nonce == "" || params.Get("nonce").String() != nonce {
		return nil, aun.CloseInvalidNonce,
			aun.Errorf(codes.CertificateInvalid, "The nonce is not that of the challenge, or has been used")
	}
	if err := aun.CheckVersion(params.Get("protocol")); err != nil {
		return nil, aun.CloseProtocol, err
	}
	proof, err := s.front.config.Authority.Authenticate(params.Get("auth"))
	if err != nil {
		return nil, aun.CloseAuthFailed, err
	}
	s.Device, s.Slot = params.Get("device.id").String(), params.Get("client.slot_id").String()
	ttl, err := readShort(params.Get("options"))
	switch {
	case err != nil:
		return nil, aun.CloseAuthFailed, err
	case len(s.Device) > maxName || len(s.Slot) > maxName:
		return nil, aun.CloseAuthFailed, aun.Errorf(codes.InvalidParams, "device.id or client.slot_id is too long")
	case s.Device == "" && s.Slot != "":
		return nil, aun.CloseAuthFailed, &aun.Error{Code: codes.InvalidParams, Message: "A slot needs a device",
			Data: []byte(`{"reason":"slot_requires_device_id"}`)}
	}
	s.setTTL(ttl)
	if extra := params.Get("extra_info"); extra.IsObject() && len(extra.Raw) <= maxExtra {
		s.extra = json.RawMessage(extra.Raw)
	}
	if closing, err := s.enter(proof); err != nil {
		return nil, closing, err
	}
	namespaces := []string{"auth", "meta", "task"}
	for name := range s.front.config.Services {
		if !slices.Contains(namespaces, name) {
			namespaces = append(namespaces, name)
		}
	}
	connection := map[string]any{"id": aun.NewNonce(), "device_id": s.Device, "slot_id": s.Slot, "kind": "long"}
	if ttl > 0 {
		connection["kind"], connection["short_ttl_ms"] = "short", ttl.Milliseconds()
	}
	return mustJSON(map[string]any{
		"status": "ok", "authenticated": true, "protocol": aun.Version, "server_time": time.Now().UnixMilli(),
		"identity":    map[string]any{"aid": s.AID, "role": "user", "module_id": "aip-gateway"},
		"connection":  connection,
		"trust_level": "verified", "heartbeat_interval": int(heartbeat / time.Second),
		"capabilities": map[string]any{
			"namespaces": sorted(namespaces), "features": []string{}, "max_message_size": aun.MaxFrame,
		},
	}), 0, nil
}

const (
	maxName  = 128  // bytes of the name of a device or a slot
	maxExtra = 1024 // bytes of the client's own description; more is left out
)

// enter makes the client known, and replaces the older connection of its device.
func (s *Session) enter(proof aun.Proof) (closing aun.CloseCode, err error) {
	c := &s.front.config
	s.AID = string(proof.AID)
	s.Peer = c.Identities.Of(s.identity())
	s.prove(proof)
	replaced, refused := c.Connections.add(s, c.Limits)
	switch refused {
	case 0:
	case aun.CloseTryLater:
		return refused, &aun.Error{Code: codes.LimitExceeded, Message: "There are too many connections; try again later",
			Data: []byte(`{"limit":"connections"}`)}
	case aun.CloseShortCapacity:
		return refused, errShortCapacity
	default:
		return refused, &aun.Error{Code: codes.LimitExceeded, Message: "There are too many connections of this AID",
			Data: []byte(`{"limit":"connections_per_aid"}`)}
	}
	s.conn.LoggedIn()
	if replaced != nil {
		replaced.replace(s)
	}
	s.replaceElsewhere()
	s.mu.Lock()
	s.ready = s.refused == nil
	s.mu.Unlock()
	s.login.Stop()
	// Not before it is ready: a new configuration in place of this one looks for ready ones.
	if err := s.checkProof(); err != nil {
		return aun.CloseAuthFailed, err
	}
	return 0, nil
}

// identity returns the client's peer without an AIC.
func (s *Session) identity() identity.Peer {
	return identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: s.AID, Login: true}
}

// ping is meta.ping.
func ping() []byte {
	return mustJSON(map[string]any{"pong": true, "timestamp": time.Now().UnixMilli(),
		"heartbeat_interval": int(heartbeat / time.Second)})
}

// status is meta.status.
func (s *Session) status() []byte {
	return mustJSON(map[string]any{"mode": s.mode, "aid": s.AID, "role": "user", "connected_at": s.began.UnixMilli(),
		"protocol_version": aun.Version})
}

// mustJSON returns the JSON of a value, known to have one.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
