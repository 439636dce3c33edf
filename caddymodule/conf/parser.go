// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// Parser reads a directive of a Caddyfile and keeps the first error, so that the options read like a grammar.
type Parser struct {
	*caddyfile.Dispenser

	// Of says what is configured, for errors; nil for nothing to say.
	Of func() string

	err     error
	path    []string                           // the names of the blocks that are read, from the directive on
	grammar *Grammar                           // where else an option may belong
	read    func(option caddyfile.Token)       // is called when an option has been read; may be nil
	open    func(path []string, known Options) // is called when a block begins; may be nil
}

// NewParser returns a parser of the tokens of d.
func NewParser(d *caddyfile.Dispenser) *Parser { return &Parser{Dispenser: d, grammar: &registered} }

// Options are the options of a block by their names, each with the function that reads its values.
type Options map[string]func()

// ReadChecked reads a directive or a global option, and checks what it says. What the check finds is wrong with the
// option with which it came about: to know which one, all is read once more, into again, and checked after each option.
func ReadChecked[T any](
	d *caddyfile.Dispenser, into, again *T, read func(*Parser, *T), check func(*T) error,
) error {
	p := NewParser(d)
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
	q := NewParser(d)
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
	p.Fail(wrong.Error())
	return p.err
}

// ReadDirective reads a directive that has no arguments and no options.
func ReadDirective(d *caddyfile.Dispenser) error {
	return ReadOptions(d, new(int), func(*Parser, *int) Options { return nil }, func(*int) error { return nil })
}

// ReadOptions reads a directive that has no arguments, and the options that known returns, and checks it.
func ReadOptions[T any](d *caddyfile.Dispenser, into *T, known func(*Parser, *T) Options, check func(*T) error) error {
	return ReadChecked(d, into, new(T), func(p *Parser, into *T) {
		p.Next()
		name := p.Val()
		if p.NextArg() {
			p.Keep(p.ArgErr())
			return
		}
		p.Block(name, known(p, into))
	}, check)
}

// Failed returns the first error; nil if there is none.
func (p *Parser) Failed() error { return p.err }

// Keep keeps an error, unless there is one already.
func (p *Parser) Keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

// Fail keeps an error about the token that was read last.
func (p *Parser) Fail(why string) {
	if p.err != nil {
		return
	}
	if p.Of != nil {
		why = p.Of() + why
	}
	p.err = p.Err(why)
}

// Block reads a block, if there is one.
func (p *Parser) Block(name string, known Options) {
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
			p.Fail(p.grammar.misplaced(p.path, option, known))
		case p.open == nil && seen[option] && !p.grammar.repeats(name, option):
			p.Fail(option + " is given twice in " + name)
		default:
			seen[option] = true
			if read(); p.read != nil && p.err == nil {
				p.read(token)
			}
		}
	}
}

// Section returns what reads an option that has a block of its own and no values.
func (p *Parser) Section(known Options) func() {
	return func() { p.Block(p.Val(), known) }
}

// Word returns what reads an option with one value.
func (p *Parser) Word(into *string) func() {
	return Value(p, into, "", func(s string) (string, error) { return s, nil })
}

// Flag returns what reads an option without values, which sets something.
func (p *Parser) Flag(into *bool) func() {
	return func() {
		if name := p.Val(); p.NextArg() {
			p.Fail(name + " takes no value")
		}
		*into = true
	}
}

// Words returns what reads an option with one value or more. They are added to a list.
func (p *Parser) Words(into *[]string) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) == 0 {
			p.Fail(name + " needs at least one value")
		}
		*into = append(*into, args...)
	}
}

// Joined returns what reads an option whose values are joined by spaces.
func (p *Parser) Joined(into *string) func() {
	var list []string
	return func() {
		list = nil
		p.Words(&list)()
		*into += strings.Join(list, " ")
	}
}

// WordsOf returns what reads an option with a name, and with one word or more that belong to it: they are added to the
// list of that name. needs says what the option needs, for the error.
func (p *Parser) WordsOf(into *map[string][]string, needs string) func() {
	return func() {
		option := p.Val()
		args := p.RemainingArgs()
		if len(args) < 2 {
			p.Fail(option + " needs " + needs)
			return
		}
		if *into == nil {
			*into = make(map[string][]string)
		}
		(*into)[args[0]] = append((*into)[args[0]], args[1:]...)
	}
}

// Pair returns what reads an option with two values. needs names them for the error.
func (p *Parser) Pair(needs string, set func(first, second string)) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) != 2 {
			p.Fail(name + " needs " + needs)
			return
		}
		set(args[0], args[1])
	}
}

// CertAndKey returns what reads an option with the files of a certificate and its key.
func (p *Parser) CertAndKey(cert, key *string) func() {
	return p.Pair("a certificate and a key, both PEM files", func(first, second string) { *cert, *key = first, second })
}

// Duration returns what reads an option with a duration.
func (p *Parser) Duration(into *caddy.Duration) func() {
	return Value(p, into, "a duration, such as 30s or 24h", func(s string) (caddy.Duration, error) {
		d, err := caddy.ParseDuration(s)
		return caddy.Duration(d), err
	})
}

// Optional returns what reads an option whose default is not 0 although 0 may be set, by what reads the number.
func Optional[T any](p *Parser, into **T, number func(*T) func()) func() {
	return func() {
		v := new(T)
		if number(v)(); p.Val() != "" { // of an empty value, the default stays
			*into = v
		}
	}
}

// Number returns what reads an option with a whole number.
func (p *Parser) Number(into *int) func() { return Value(p, into, "a whole number", strconv.Atoi) }

// maxSize is the largest size that an option takes, in bytes.
const maxSize = 1 << 50

// Size returns what reads an option with a size in bytes, as a plain number or with a unit.
func Size[T int | int64](p *Parser, into *T) func() {
	return Value(p, into, "a size, such as 64MiB", func(s string) (T, error) {
		n, err := humanize.ParseBytes(s)
		if n > maxSize {
			err = strconv.ErrRange
		}
		return T(n), err
	})
}

// Value returns what reads an option with one value. The error says that it must be must. An empty value, such as that
// of an environment variable that is not set, is as good as none.
func Value[T any](p *Parser, into *T, must string, parse func(string) (T, error)) func() {
	return func() {
		name := p.Val()
		args := p.RemainingArgs()
		if len(args) != 1 {
			p.Fail(name + " needs exactly one value")
			return
		}
		var v T
		var err error
		if args[0] != "" {
			v, err = parse(args[0])
		}
		if err != nil {
			if literal := Literal(name, args[0]); literal != nil {
				p.Fail(literal.Error())
			}
			p.Fail(name + " is " + strconv.Quote(args[0]) + ", but must be " + must)
			return
		}
		*into = v
	}
}
