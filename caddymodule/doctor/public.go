// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/url"
	"strings"
)

// placeholder stands for the AIC of the Partner in its public URL.
const placeholder = "{AIC}"

// examinePublic says whether the Partner is at the path of its public URL where that has the AIC, which no other
// setting follows.
func (p *mounted) examinePublic() []Finding {
	s := &p.settings
	if p.invoked || !strings.Contains(s.Public, placeholder) {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(s.Public, placeholder, s.AIC))
	if err != nil {
		return nil // the gateway refuses it
	}
	at := p.stripped + strings.TrimSuffix(s.BasePath, "/")
	public := strings.TrimSuffix(u.Path, "/")
	if strings.EqualFold(at, public) || !strings.Contains(public, s.AIC) {
		return nil
	}
	text := fmt.Sprintf("public_url has {AIC} in its path, but the Partner is at %q: no call there reaches it, unless "+
		"a proxy before the site removes the AIC; leave {AIC} out", at+"/")
	switch {
	case s.AIC == "registered":
		text += ", or mount it there once the registry has assigned the AIC"
	case p.stripped == "":
		text += fmt.Sprintf(", or set base_path to %q", public)
	}
	return []Finding{{CheckBasePath, Warning, s.name(), text}}
}
