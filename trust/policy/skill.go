// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// skills holds if a call asks for one of a few skills. With every, it holds if the call asks for at least one, and for
// no other: a call for two is not let in by the one.
type skills struct {
	list  []string
	every bool
}

func (s skills) holds(c *Call) bool {
	named, err := c.Skill()
	if err != nil {
		return !s.every
	}
	listed := slices.Contains(s.list, named)
	switch {
	case !s.every:
		return named != "" && listed || meet(c.Skills, s.list)
	case named != "" && !listed:
		return false
	}
	return (named != "" || len(c.Skills) > 0) &&
		!slices.ContainsFunc(c.Skills, func(one string) bool { return !slices.Contains(s.list, one) })
}

// skill is the skill named by a message.
type skill struct {
	read  bool
	named string
	err   error
}

// Skill returns the skill named by the message of the call; empty for none. All places an agent may look at must have
// the same name: otherwise the error says, for the log, that one skill would be judged and another one used.
func (c *Call) Skill() (string, error) {
	if s := &c.skill; !s.read && c.Message != nil {
		s.read = true
		s.in(gjson.ParseBytes(c.Message.Params), false)
		s.in(gjson.ParseBytes(c.Message.Extensions), true) // each family of dialects has an object there
		for i := range c.Message.DataItems {
			s.in(gjson.ParseBytes(c.Message.DataItems[i].Metadata), true)
		}
	}
	return c.skill.named, c.skill.err
}

// in looks for skills in an object, and in those of its members sent to agents as objects of their own; with all, in
// all its objects.
func (s *skill) in(object gjson.Result, all bool) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		switch name := key.Str; {
		case isSkill(name):
			s.add(v)
		case all || name == "metadata" || name == "message" || name == "configuration":
			s.in(v, false)
		}
		return s.err == nil
	})
}

// isSkill reports whether a reader may take a name for skillId: some ignore case, and some know the name with an
// underscore.
func isSkill(name string) bool {
	return strings.EqualFold(strings.ReplaceAll(name, "_", ""), "skillId")
}

// add adds the name of a skill. A null, and the empty text, name none.
func (s *skill) add(v gjson.Result) {
	switch {
	case v.Type == gjson.Null || v.Type == gjson.String && v.Str == "":
	case v.Type != gjson.String:
		s.err = errors.New("the call has a skillId that is no text")
	case s.named != "" && s.named != v.Str:
		s.err = fmt.Errorf("the call names the skills %.100q and %.100q, and may name one", s.named, v.Str)
	default:
		s.named = strings.Clone(v.Str)
	}
}
