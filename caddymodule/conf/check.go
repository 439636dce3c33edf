// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// OrDefault sets a value that is not set.
func OrDefault[T comparable](value *T, otherwise T) {
	var unset T
	if *value == unset {
		*value = otherwise
	}
}

// NotNegative checks a duration.
func NotNegative(setting string, d caddy.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %s, but must not be negative", setting, time.Duration(d))
	}
	return nil
}

// NotNegativeNumber is NotNegative for a number.
func NotNegativeNumber[N int | int64](setting string, n N) error {
	if n < 0 {
		return fmt.Errorf("%s is %d, but must not be negative", setting, n)
	}
	return nil
}
