// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// stand is an agent behind the gateway.
type stand struct {
	name  string
	agent string // the option agent of the gateway
	lacks string // what the agent cannot do, or does on another text: behaviors of a profile
	aic   identity.AIC
}

// script are the agents on other projects' SDKs. None has a task with two products. All say that they work before they
// reject, if they can, and AIP has no way from there to a rejection.
const script = `two_products: "", reject: ""`

// agents starts an agent of each dialect.
func agents(t *testing.T) []stand {
	t.Helper()
	run := func(name string) string {
		path, args := site.SDKCommand(t, site.SDKAgents[name]...)
		return site.RunAgent(t, path, args...)
	}
	v03, v10 := run("a2a-go-03"), run("a2a-go-10")
	aun := site.ServeBehind(t)
	aun.Stop(t) // another gateway is in front of the agent
	all := []stand{
		sample(t),
		{name: "legacy-trpc", agent: "a2a/legacy " + run("legacy-trpc"), lacks: script},
		{name: "a2a-0.3", agent: "a2a/0.3 " + v03 + "/invoke", lacks: script},
		{name: "a2a-1.0", agent: "a2a/1.0 " + v10 + "/invoke", lacks: script},
		{name: "a2a-1.0-rest", agent: "a2a/1.0-rest " + v10 + "/rest", lacks: script},
		{name: "a2a-1.0-grpc", agent: "a2a/1.0-grpc " + v10, lacks: script},
		{name: "agentapi", agent: "agentapi " + site.NewRuntimeAgent(t).URL + "/process", lacks: script},
		{name: "aun", agent: fmt.Sprintf("aun %s %s {\nidentity %s\nroots %s\ntls {\nca %s\n}\n}", site.AUNAgent, aun.URL,
			aun.InDir("own.pem"), aun.InDir("roots.pem"), aun.CA), lacks: script + ", long: slow 30000"},
	}
	for i := range all { // no two agents have the same AIC
		all[i].aic = certificates(t).Server.AIC
	}
	return all
}

// certificates makes some with another root.
func certificates(t *testing.T) *devpki.PKI {
	t.Helper()
	return site.Must(devpki.Make(devpki.Options{Dir: t.TempDir()}))(t)
}

// sample starts the agent that comes with the gateway; the defaults of a profile fit it.
func sample(t *testing.T) stand {
	t.Helper()
	_, address := site.SampleAgent(t)
	return stand{name: "sample", agent: "a2a/legacy http://" + address, aic: site.Certificates(t).Server.AIC}
}

// handle returns the directives of a site with all agents.
func handle(all []stand) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "aip_gateway /%s* {\nagent %s\ncallers aip aip/2\naic %s\n}\n", s.name, s.agent, s.aic)
	}
	return b.String()
}

// webhooks are the receivers of aipconform, which gateways may call.
const webhooks = "allow_networks 127.0.0.1/32"

// identities writes certificates of callers into a directory, and returns them as a profile has them.
func identities(t *testing.T) string {
	t.Helper()
	pki, dir := site.Certificates(t), t.TempDir()
	files := &site.Site{T: t, Dir: dir}
	var b strings.Builder
	for _, one := range []struct {
		name string
		file devpki.File
	}{
		{"leader", pki.Leader}, {"other", pki.LeaderV1}, {"foreign", certificates(t).Leader},
		{"expired", files.WritePair("expired", site.IssueFor(t, -time.Minute, string(pki.Leader.AIC)))},
		{"nameless", files.WritePair("nameless", site.Issue(t, "leader.example"))},
	} {
		fmt.Fprintf(&b, "  %s: {cert: %q, key: %q}\n", one.name, one.file.Cert, one.file.Key)
	}
	return "identities:\n" + b.String()
}

// profile writes the profile of a stand behind gateways. Each gateway is asked for something else, so that it needs the
// others: one for streams, one for webhooks.
func profile(t *testing.T, s *stand, callers string, gateways []string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "behaviors: {%s}\n%spartner: {aic: %s}\nurls:\n", s.lacks, callers, s.aic)
	for i, operation := range []string{"rpc", "stream", "notification/set", "notification/get", "notification/delete",
		"notification/start"} {
		fmt.Fprintf(&b, "  %s: %s/%s/%s\n", operation, gateways[i%len(gateways)], s.name, operation)
	}
	file := filepath.Join(t.TempDir(), "profile.yaml")
	site.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}
