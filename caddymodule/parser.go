// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// parser reads a directive of a Caddyfile and keeps the first error, so that the options read like a grammar.
type parser struct {
	*caddyfile.Dispenser
	err  error
	path []string                           // the names of the blocks that are read, from the directive on
	of   func() string                      // says what is configured, for errors; nil for nothing to say
	read func(option caddyfile.Token)       // is called when an option has been read; may be nil
	open func(path []string, known options) // is called when a block begins; may be nil
}

// options are the options of a block by their names, each with the function that reads its values.
type options map[string]func()

// repeatable are the options that may stand in a block more than once, some only in the block that is named before
// them. Each time adds to a list.
var repeatable = []string{"header_up", "eab", "allow", "allow_networks", "certificate_for", "signing_key", "jwt_key",
	"allow_brokers", "allow_exchanges", "deny", "certificate", "claim", "quota", "sign", "aac issuer", "identity accept",
	"identity jwt", "identity oidc", "find registry", "find discovery", "find agent",
	"revocation crl", "revocation ocsp", "revocation acps", "revocation registry"}

// readChecked reads a directive or a global option, and checks what it says. What the check finds is wrong with the
// option with which it came about: to know which one, all is read once more, into again, and checked after each option.
func readChecked[T any](
	d *caddyfile.Dispenser, into, again *T, read func(*parser, *T), check func(*T) error,
) error {
	p := &parser{Dispenser: d}
	read(p, into)
	if p.err != nil {
		return p.err
	}
	wrong := check(into)
	if wrong == nil {
		return nil
	}
	d.Reset()
	at, found := caddyfile.Token{}, "" // where the check began to find what it finds at last
	q := &parser{Dispenser: d}
	q.read = func(option caddyfile.Token) {
		now := ""
		if err := check(again); err != nil {
			now = err.Error()
		}
		if now != found {
			at, found = option, now
		}
	}
	read(q, again)
	if found != wrong.Error() {
		d.Reset()
		d.Next()
		at = d.Token()
	}
	p.Dispenser = caddyfile.NewDispenser([]caddyfile.Token{at})
	p.Next()
	p.fail(wrong.Error())
	return p.err
}

// readDirective reads a directive that has no arguments and no options.
func readDirective(d *caddyfile.Dispenser) error {
	return readOptions(d, new(int), func(*parser, *int) options { return nil }, func(*int) error { return nil })
}

// readOptions reads a directive that has no arguments, and the options that known returns, and checks it.
func readOptions[T any](d *caddyfile.Dispenser, into *T, known func(*parser, *T) options, check func(*T) error) error {
	return readChecked(d, into, new(T), func(p *parser, into *T) {
		p.Next()
		name := p.Val()
		if p.NextArg() {
			p.err = p.ArgErr()
			return
		}
		p.block(name, known(p, into))
	}, check)
}

func (p *parser) fail(why string) {
	if p.err != nil {
		return
	}
	if p.of != nil {
		why = p.of() + why
	}
	p.err = p.Err(why)
}

// block reads a block, if there is one.
func (p *parser) block(name string, known options) {
	p.path = append(p.path, name)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if p.open != nil {
		p.open(p.path, known)
	}
	seen := make(map[string]bool)
	for nesting := p.Nesting(); p.err == nil && p.NextBlock(nesting); {
		option, token := p.Val(), p.Token()
		read, ok := known[option]
		switch {
		case !ok:
			p.fail(misplaced(p.path, option, known))
		case p.open == nil && seen[option] && !slices.Contains(repeatable, option) &&
			!slices.Contains(repeatable, name+" "+option):
			p.fail(option + " is given twice in " + name)
		default:
			seen[option] = true
			if read(); p.read != nil && p.err == nil {
				p.read(token)
			}
		}
	}
}

// section returns what reads an option that has a block of its own and no values.
func (p *parser) section(known options) func() {
	return func() { p.block(p.Val(), known) }
}

// word returns what reads an option with one value.
func (p *parser) word(into *string) func() {
	return value(p, into, "", func(s string) (string, error) { return s, nil })
}

// flag returns what reads an option without values, which sets something.
func (p *parser) flag(into *bool) func() {
	return func() {
		if name := p.Val(); p.NextArg() {
			p.fail(name + " takes no value")
		}
		*into = true
	}
}

// words returns what reads an option with one value or more. They are added to a list.
func (p *parser) words(into *[]string) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) == 0 {
			p.fail(name + " needs at least one value")
		}
		*into = append(*into, args...)
	}
}

// wordsOf returns what reads an option with a name, and with one word or more that belong to it: they are added to the
// list of that name. needs says what the option needs, for the error.
func (p *parser) wordsOf(into *map[string][]string, needs string) func() {
	return func() {
		option := p.Val()
		args := p.RemainingArgs()
		if len(args) < 2 {
			p.fail(option + " needs " + needs)
			return
		}
		if *into == nil {
			*into = make(map[string][]string)
		}
		(*into)[args[0]] = append((*into)[args[0]], args[1:]...)
	}
}

// pair returns what reads an option with two values. needs names them for the error.
func (p *parser) pair(needs string, set func(first, second string)) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) != 2 {
			p.fail(name + " needs " + needs)
			return
		}
		set(args[0], args[1])
	}
}

// duration returns what reads an option with a duration.
func (p *parser) duration(into *caddy.Duration) func() {
	return value(p, into, "a duration, such as 30s or 24h", func(s string) (caddy.Duration, error) {
		d, err := caddy.ParseDuration(s)
		return caddy.Duration(d), err
	})
}

// optional returns what reads an option whose default is not 0 although 0 may be set, by what reads the number.
func optional[T any](p *parser, into **T, number func(*T) func()) func() {
	return func() {
		v := new(T)
		if number(v)(); p.Val() != "" { // of an empty value, the default stays
			*into = v
		}
	}
}

// number returns what reads an option with a whole number.
func (p *parser) number(into *int) func() { return value(p, into, "a whole number", strconv.Atoi) }

// maxSize is the largest size that an option takes, in bytes.
const maxSize = 1 << 50

// size returns what reads an option with a size in bytes, as a plain number or with a unit.
func size[T int | int64](p *parser, into *T) func() {
	return value(p, into, "a size, such as 64MiB", func(s string) (T, error) {
		n, err := humanize.ParseBytes(s)
		if n > maxSize {
			err = strconv.ErrRange
		}
		return T(n), err
	})
}

// value returns what reads an option with one value. The error says that it must be must. An empty value, such as that
// of an environment variable that is not set, is as good as none.
func value[T any](p *parser, into *T, must string, parse func(string) (T, error)) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) != 1 {
			p.fail(name + " needs exactly one value")
			return
		}
		var v T
		var err error
		if args[0] != "" {
			v, err = parse(args[0])
		}
		if err != nil {
			if literal := literal(name, args[0]); literal != nil {
				p.fail(literal.Error())
			}
			p.fail(name + " is " + strconv.Quote(args[0]) + ", but must be " + must)
			return
		}
		*into = v
	}
}
