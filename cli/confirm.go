// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"strings"
)

// confirmFlag adds the flag by which a command that changes much asks nothing.
func (a *asking) confirmFlag() {
	a.Flags().BoolVar(&a.yes, "yes", false, "do not ask before anything is changed")
}

// confirm asks a question on stderr, unless a flag has answered it. An error means another answer than yes.
func (a *asking) confirm(question string) error {
	if a.yes {
		return nil
	}
	a.PrintErr(question + " [y/N] ")
	answer, err := bufio.NewReader(a.InOrStdin()).ReadString('\n')
	if err != nil {
		a.PrintErrln()
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was changed; answer y, or add --yes")
}
