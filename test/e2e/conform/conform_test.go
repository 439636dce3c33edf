// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// corpus is the folder with A2A's own tests.
var corpus = flag.String("corpus", "", "the `folder` tests/acts of A2A's repository")

// aipconform returns the path of the command.
func aipconform(t *testing.T) string {
	t.Helper()
	return site.Binary(t, "", "../../../conform/bin/aipconform", "make conform/bin/aipconform")
}

// atOnce is how many agents are tested at a time: most of the time they wait.
const atOnce = 4

// tested wants all musts of agents behind gateways with these URLs.
func tested(t *testing.T, all []stand, gateways ...string) {
	t.Helper()
	command, callers := aipconform(t), identities(t)
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for _, s := range all {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			t.Run(s.name, func(t *testing.T) {
				status, out, errs := site.RunProcess(t, t.TempDir(), nil, command, gateways[0]+"/"+s.name,
					"--ca", site.Certificates(t).CA.Cert, "--profile", profile(t, &s, callers, gateways), "--timeout", "100s")
				t.Log(out[strings.LastIndex(out, "\nMUST:")+1:])
				if status != 0 && status != 2 {
					t.Errorf("it ends with %d:\n%s%s", status, failures(out), errs)
				}
			})
		})
	}
	running.Wait()
}

// failures returns the part of a report about failures.
func failures(out string) string {
	if i := strings.Index(out, "\nFAIL "); i >= 0 {
		out = out[i:]
	}
	return site.Tail(out, 20_000)
}

// TestConform tests the agent that comes with the gateway.
func TestConform(t *testing.T) {
	t.Parallel()
	all := []stand{sample(t)}
	tested(t, all, site.Serve(t, site.Config{Handle: handle(all), Notify: webhooks}).URL())
}

// TestConformOfEveryAgent tests agents of each dialect, behind one gateway.
func TestConformOfEveryAgent(t *testing.T) {
	all := agents(t)
	tested(t, all, site.Serve(t, site.Config{Handle: handle(all), Notify: webhooks}).URL())
}

// TestConformOfThreeGateways tests the same behind three gateways over one store.
func TestConformOfThreeGateways(t *testing.T) {
	all := agents(t)
	c := site.NewCluster(t, 3, handle(all), "}\nnotify {\n"+webhooks)
	var urls []string
	for _, one := range c.Gateways {
		urls = append(urls, one.URL())
	}
	tested(t, all, urls...)
}

// TestA2A carries out A2A's own tests at an agent and through the gateway, shows what differs, and wants no must that
// only the agent meets.
func TestA2A(t *testing.T) {
	if *corpus == "" {
		t.Fatal("give the folder with A2A's tests: make conform CORPUS=DIR")
	}
	folder := site.Must(filepath.Abs(*corpus))(t)
	path, args := site.SDKCommand(t, site.SDKAgents["a2a-go-10"]...)
	agent := site.RunAgent(t, path, args...)
	s := site.Serve(t, site.Config{Handle: "aip_gateway {\nagent a2a/1.0 " + agent + "/invoke\ncallers a2a\n}",
		Notify: webhooks})
	pki := site.Certificates(t)
	status, out, errs := site.RunProcess(t, t.TempDir(), nil, aipconform(t), "a2a", "--corpus", folder,
		"--ca", pki.CA.Cert, "--cert", pki.Leader.Cert, "--key", pki.Leader.Key, agent, "--through", s.URL())
	if status > 1 {
		t.Fatalf("it ends with %d:\n%s%s", status, out, errs)
	}
	differences := out[strings.LastIndex(out, "\nAt ")+1:]
	t.Log(differences)
	if worse := regexp.MustCompile(`(?m)^.* must +pass → .*$`).FindAllString(differences, -1); len(worse) > 0 {
		t.Errorf("behind the gateway, %d musts fail:\n%s", len(worse), strings.Join(worse, "\n"))
	}
}
