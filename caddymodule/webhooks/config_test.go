// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// read reads settings as Caddy does.
func read(t *testing.T, text string) (*Config, error) {
	t.Helper()
	c := new(Config)
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	if err := c.Provision(); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// TestConfig: the engine has what is set, and the defaults of what is not.
func TestConfig(t *testing.T) {
	for text, want := range map[string]notify.Config{
		`{}`: {Attempts: 10, Timeout: 15 * time.Second, Concurrency: 64,
			Egress: new(egress.Policy)},
		`{"attempts":1,"timeout":"1s"}`: {Attempts: 1, Timeout: time.Second, Concurrency: 64,
			Egress: new(egress.Policy)},
		`{"attempts":100,"timeout":"1m","allow_networks":["10.1.2.3/8","::1/128"],"keep_bodies":true,
			"certificate_for":["Hooks.example.com","[2001:db8::1]:8443"]}`: {
			Attempts: 100, Timeout: time.Minute, Concurrency: 64, KeepBodies: true,
			Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
				netip.MustParsePrefix("::1/128")}},
			CertificateFor: []egress.Server{"hooks.example.com:443", "[2001:db8::1]:8443"},
		},
	} {
		c, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		diff := cmp.Diff(&want, c.Config(nil), cmpopts.EquateComparable(netip.Prefix{}))
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestDialects: the dialect of a webhook comes from the host.
func TestDialects(t *testing.T) {
	c, err := read(t, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	of := ""
	c.Config(func(_ *task.Webhook, partner string) translate.Notifier {
		of = partner
		return nil
	}).Dialects(nil, "travel")
	if of != "travel" {
		t.Errorf("the host was asked for a dialect of %q", of)
	}
}

// TestMistakes: what is said about each mistake, when it is provisioned as when it is only checked.
func TestMistakes(t *testing.T) {
	const credentials = "notify: callback must be a URL without credentials, query and fragment"
	mistakes := map[string]string{
		`{"attempts":-1}`:         "notify: attempts is -1, but must be 1 to 100",
		`{"attempts":101}`:        "notify: attempts is 101, but must be 1 to 100",
		`{"timeout":"999ms"}`:     "notify: timeout is 999ms, but must be a second to a minute",
		`{"timeout":"61s"}`:       "notify: timeout is 1m1s, but must be a second to a minute",
		`{"timeout":"-15s"}`:      "notify: timeout is -15s, but must be a second to a minute",
		`{"allow_networks":[""]}`: `notify: allow_networks: "" is no network, such as 10.0.0.0/8`,
		`{"allow_networks":["10.0.0.0/8","10.0.0.1"]}`: `notify: allow_networks: "10.0.0.1" is no network, such as ` +
			`10.0.0.0/8`,
		`{"certificate_for":["a.example","https://b.example"]}`: `notify: certificate_for: "https://b.example": it must ` +
			`be a host or host:port, such as hooks.example.com`,
		`{"certificate_for":["a.example:0"]}`: `notify: certificate_for: "a.example:0": the port must be a number from 1 ` +
			`to 65535`,
		`{"callback":"a.example"}`:                  `notify: callback: "a.example" is no http or https URL`,
		`{"callback":"https://me:me@a.example"}`:    credentials,
		`{"callback":"https://a.example/push?a=b"}`: credentials,
		`{"callback":"https://a.example/#push"}`:    credentials,
		`{"callback":"https://{env.HOST}/push"}`: "notify: callback cannot have the placeholder {env.HOST}; in a " +
			"Caddyfile, write {$HOST}, which is replaced when the file is read",
	}
	conftest.Refuses(t, mistakes, func(text string) error {
		_, err := read(t, text)
		return err
	})
	conftest.Refuses(t, mistakes, func(text string) error {
		c := new(Config)
		if err := json.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		c.FillDefaults()
		return c.Validate()
	})
}

// TestSigningKeys: each key signs, in the order of the settings. It may be in the environment, with a line break behind
// it, as files have it.
func TestSigningKeys(t *testing.T) {
	shared, private := sign.GenerateHMAC(), sign.Generate()
	t.Setenv("WEBHOOK_KEY", private+"\n")
	c, err := read(t, `{"signing_keys":["`+shared+`","{env.WEBHOOK_KEY}"]}`)
	if err != nil {
		t.Fatal(err)
	}
	keys, at, body := c.Config(nil).Keys, time.Unix(1_700_000_000, 0), []byte("{}")
	header := keys.Header("n-1", at, body)
	if len(keys) != 2 {
		t.Fatalf("there are %d keys", len(keys))
	}
	for i, key := range []string{shared, keys[1].Public()} {
		one := strings.Fields(header)[i]
		if err := signtest.Verify(one, "n-1", sign.Timestamp(at), body, at, key); err != nil {
			t.Errorf("signature %d of %q: %v", i+1, header, err)
		}
	}
}

// TestSigningKeyMistakes: what is said about a key of no use names its number, and holds nothing of it.
func TestSigningKeyMistakes(t *testing.T) {
	t.Setenv("WEBHOOK_KEY", "whpk_hunter2")
	good := sign.Generate()
	conftest.Refuses(t, map[string]string{
		"": "notify: signing_key 2: the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ (ed25519)",
		"hunter2": "notify: signing_key 2: the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ " +
			"(ed25519)",
		"{env.WEBHOOK_KEY}": "notify: signing_key 2: the signing key is a public one (whpk_); give its private half " +
			"(whsk_)",
		"whsec_aHVudGVyMg==": "notify: signing_key 2: the secret after whsec_ has 7 bytes, and must have 24 to 64",
		"whsec_hunter2{env.NO_SUCH_KEY}": "notify: signing_key 2 has a placeholder without a value: " +
			"{env.NO_SUCH_KEY}",
	}, func(key string) error {
		c := Config{SigningKeys: []string{good, key}}
		return c.Provision()
	})
}

// TestGuard: a webhook beside the gateway is reached only if its network is allowed.
func TestGuard(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for text, allowed := range map[string]bool{
		`{}`: false, `{"allow_networks":["10.0.0.0/8"]}`: false, `{"allow_networks":["10.0.0.0/8","127.0.0.1/32"]}`: true,
	} {
		c, err := read(t, text)
		if err != nil {
			t.Fatal(err)
		}
		dialer := egress.Dialer{Policy: *c.Guard()}
		conn, err := dialer.DialPlain(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		if _, refused := errors.AsType[*egress.RefusedError](err); refused == allowed || (err == nil) != allowed {
			t.Errorf("%s: the connection has the error %v", text, err)
		}
	}
}
