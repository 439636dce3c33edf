// SPDX-License-Identifier: Apache-2.0

package rabbittest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// packagesVersion is install.sh's name of the set of packages.
const packagesVersion = "2"

// ResourceServer is the broker's name in tokens.
const ResourceServer = "rabbitmq"

// tokenKey signs tokens of the broker.
const tokenKey = "a key that signs the tokens of tests"

// configure writes the files for the node.
func (b *Broker) configure(config Config) error {
	conf := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d", b.Port) + `
loopback_users = none
log.console = true
log.console.level = warning
log.file = false
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 1GB
num_acceptors.tcp = 4
num_acceptors.ssl = 4
collect_statistics_interval = 60000
`
	advanced := "[].\n"
	if config.Security != nil {
		conf += config.Security(b)
	} else {
		conf += b.security(config)
		advanced = fmt.Sprintf(`[{rabbitmq_auth_backend_oauth2, [
	{resource_server_id, <<"%s">>},
	{key_config, [{default_key, <<"test">>}, {signing_keys, #{
		<<"test">> => {map, #{<<"kty">> => <<"oct">>, <<"alg">> => <<"HS256">>, <<"k">> => <<"%s">>}}}}]}]}].
`, ResourceServer, base64.RawURLEncoding.EncodeToString([]byte(tokenKey)))
	}
	for name, text := range map[string]string{
		"rabbitmq.conf":   conf,
		"advanced.config": advanced,
		"enabled_plugins": "[rabbitmq_auth_mechanism_ssl, rabbitmq_auth_backend_oauth2].\n",
		".erlang.cookie":  b.cookie,
	} {
		mode := os.FileMode(0o600)
		if name == ".erlang.cookie" {
			mode = 0o400
		}
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

// security returns the settings of a broker with logins by a password, a Token or, over TLS, a certificate.
func (b *Broker) security(config Config) string {
	conf := `auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_backends.1 = internal
auth_backends.2 = rabbit_auth_backend_oauth2
`
	if b.TLSPort == 0 {
		return conf + "listeners.ssl = none\n"
	}
	return conf + fmt.Sprintf(`listeners.ssl.1 = 127.0.0.1:%d
auth_mechanisms.3 = EXTERNAL
ssl_options.cacertfile = %s
ssl_options.certfile = %s
ssl_options.keyfile = %s
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
ssl_cert_login_from = common_name
`, b.TLSPort, config.CA, config.Cert, config.Key)
}

// AddVhost adds a virtual host.
func (b *Broker) AddVhost(name string) error {
	_, err := b.Eval(fmt.Sprintf("rabbit_vhost:add(%s, <<\"test\">>)", binary(name)))
	return err
}

// AddUser adds a user, or changes its password. A user without a password can only log in by a certificate.
func (b *Broker) AddUser(name, password string) error {
	exists := fmt.Sprintf("rabbit_auth_backend_internal:exists(%s)", binary(name))
	change := fmt.Sprintf("rabbit_auth_backend_internal:change_password(%s, %s, <<\"test\">>)",
		binary(name), binary(password))
	add := fmt.Sprintf("rabbit_auth_backend_internal:add_user(%s, %s, <<\"test\">>)", binary(name), binary(password))
	_, err := b.Eval(fmt.Sprintf("case %s of true -> %s; false -> %s end", exists, change, add))
	return err
}

// Permit lets a user configure, write and read all matches of the regular expressions, in a virtual host.
func (b *Broker) Permit(user, vhost, configure, write, read string) error {
	_, err := b.Eval(fmt.Sprintf(
		"rabbit_auth_backend_internal:set_permissions(%s, %s, %s, %s, %s, <<\"test\">>)",
		binary(user), binary(vhost), binary(configure), binary(write), binary(read)))
	return err
}

// Token returns a JSON Web Token for the broker, as a password. Claims are added to the claim of the audience, for
// example sub, exp (Unix time in seconds), and scope.
func Token(claims map[string]any) string {
	all := map[string]any{"aud": ResourceServer}
	for name, value := range claims {
		all[name] = value
	}
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err) // claims are JSON by contract
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, []byte(tokenKey))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// named is a list comprehension of Erlang over the open connections: %s stands for the elements of the list, of the
// connection P with the client-provided name Name. A connection may close meanwhile.
const named = `[%s || P <- rabbit_networking:connections(), {ok, Name} <- [try {client_properties, Own} = ` +
	`hd(rabbit_networking:connection_info(P, [client_properties])), ` +
	`{_, _, It} = lists:keyfind(<<"connection_name">>, 1, Own), {ok, It} catch _:_ -> closed end]%s]`

// Connections returns the client-provided names of the open connections.
func (b *Broker) Connections() ([]string, error) { return b.names(fmt.Sprintf(named, "Name", "")) }

// CloseConnections closes the connections with a client-provided name, as an operator does. It returns their number.
func (b *Broker) CloseConnections(name string) (int, error) {
	closed, err := b.names(fmt.Sprintf(named,
		`begin catch rabbit_networking:close_connection(P, "closed by an operator"), Name end`,
		", Name =:= "+binary(name)))
	return len(closed), err
}

// Queues returns the names of the queues of a virtual host.
func (b *Broker) Queues(vhost string) ([]string, error) {
	return b.names(fmt.Sprintf("[element(4, amqqueue:get_name(Q)) || Q <- rabbit_amqqueue:list(%s)]", binary(vhost)))
}

// names evaluates an expression for a list of binaries.
func (b *Broker) names(expression string) ([]string, error) {
	text, err := b.text(fmt.Sprintf(`lists:join("\n", %s)`, expression))
	if err != nil || text == "" {
		return nil, err
	}
	return strings.Split(text, "\n"), nil
}

// binary returns a text as Erlang writes it.
func binary(text string) string {
	var b strings.Builder
	b.WriteString("<<")
	for i := range len(text) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, text[i])
	}
	b.WriteString(">>")
	return b.String()
}
