// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"fmt"
	"io"
	"os"
)

// AddKey adds a line of MakeKey to a file of keys, and makes the file if there is none. Nothing is written if ReadKeys
// would refuse the file, for example for two keys of one name.
func AddKey(file, line string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := addKey(f, line); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func addKey(f *os.File, line string) error {
	if err := checkPrivate(f); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return err
	}
	if n := len(content); n > 0 && content[n-1] != '\n' {
		line = "\n" + line
	}
	line += "\n"
	if len(content)+len(line) > maxKeyFile {
		return fmt.Errorf("%s would have more than %d bytes", f.Name(), maxKeyFile)
	}
	if _, err := parseKeys(append(content, line...)); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	_, err = f.WriteString(line)
	return err
}
