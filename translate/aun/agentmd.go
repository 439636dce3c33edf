// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The limits of an agent.md.
const (
	MaxAgentMD     = 4096 // bytes, without its signature
	maxFrontMatter = 2560 // bytes that lists may fill
	maxDescription = 100  // characters of description in the front matter
	maxName        = 64   // characters of a name or a tag
	maxTags        = 16   // entries of each list of the front matter
)

// AppendAgentMD appends the agent.md of an agent fronted under an AID: front matter in YAML, and a body in Markdown.
// Parts of the card that do not fit are left out.
func AppendAgentMD(dst []byte, aid string, card *translate.Card) []byte {
	begin := len(dst)
	name := shorten(oneLine(card.Name), maxName)
	if name == "" {
		name = aid
	}
	description := oneLine(card.Description)
	if description == "" {
		description = name
	}
	dst = append(dst, "---\n"...)
	for _, f := range [...]translate.Field{
		{Name: "aid", Value: aid},
		{Name: "name", Value: name},
		{Name: "type", Value: "assistant"},
		{Name: "version", Value: semver(card.Version)},
		{Name: "description", Value: shorten(description, maxDescription)},
		{Name: "visibility", Value: "public"},
		{Name: "provider", Value: shorten(oneLine(card.Provider.Organization), maxName)},
	} {
		if f.Value != "" {
			dst = append(task.AppendString(append(append(dst, f.Name...), ": "...), f.Value), '\n')
		}
	}
	var skills []string
	for _, s := range card.Skills {
		skills = append(skills, s.Name)
	}
	end := begin + maxFrontMatter
	dst = appendList(dst, end, "tags", AgentTags(card))
	dst = appendList(dst, end, "skills", skills)
	dst = appendList(dst, end, "input_modes", card.DefaultInputModes)
	dst = appendList(dst, end, "output_modes", card.DefaultOutputModes)
	dst = append(dst, "---\n\n# "...)
	dst = append(append(dst, escapeMarkdown(name)...), "\n\n"...)

	// The body takes the rest: the description has half of it at most.
	left := func() int { return MaxAgentMD - (len(dst) - begin) }
	dst = append(dst, cutBytes(escapeMarkdown(description), left()/2)...)
	dst = append(dst, '\n')
	if len(card.Skills) == 0 {
		return dst
	}
	const heading = "\n## Skills\n\n"
	dst = append(dst, heading...)
	for _, s := range card.Skills {
		line := "- **" + escapeMarkdown(shorten(oneLine(s.Name), maxName)) + "**"
		if text := oneLine(s.Description); text != "" {
			line += ": " + escapeMarkdown(text)
		}
		if line = cutBytes(line, 512); len(line)+1 > left() {
			break
		}
		dst = append(append(dst, line...), '\n')
	}
	return dst
}

// AgentTags returns the tags of an agent: those of its skills, each once.
func AgentTags(card *translate.Card) (tags []string) {
	for _, s := range card.Skills {
		for _, tag := range s.Tags {
			if tag = shorten(oneLine(tag), maxName); tag != "" && !slices.Contains(tags, tag) && len(tags) < maxTags {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

// AppendSignature appends the block with the signature of an agent.md. signature is an ECDSA signature in DER over the
// SHA-256 of all bytes before the block, fingerprint the SHA-256 of the certificate it was made with, and timestamp the
// time in seconds since 1970.
func AppendSignature(agentMD []byte, fingerprint [32]byte, timestamp int64, signature []byte) []byte {
	agentMD = append(agentMD, "<!-- AUN-SIGNATURE\ncert_fingerprint: sha256:"...)
	agentMD = hex.AppendEncode(agentMD, fingerprint[:])
	agentMD = strconv.AppendInt(append(agentMD, "\ntimestamp: "...), timestamp, 10)
	agentMD = base64.StdEncoding.AppendEncode(append(agentMD, "\nsignature: "...), signature)
	return append(agentMD, "\n-->\n"...)
}

// appendList appends a list of the front matter, unless it is empty. dst gets no longer than end by it.
func appendList(dst []byte, end int, name string, values []string) []byte {
	n := 0
	for _, v := range values {
		if v = shorten(oneLine(v), maxName); v == "" || n == maxTags {
			continue
		}
		was := len(dst)
		if n == 0 {
			dst = append(append(dst, name...), ":\n"...)
		}
		dst = append(task.AppendString(append(dst, "  - "...), v), '\n')
		if len(dst) > end {
			return dst[:was]
		}
		n++
	}
	return dst
}

var semverForm = regexp.MustCompile(`^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,32})?$`)

// semver returns a version as agent.md requires it: one in another form is replaced.
func semver(version string) string {
	if version = strings.TrimPrefix(strings.TrimSpace(version), "v"); semverForm.MatchString(version) {
		return version
	}
	return "1.0.0"
}

// oneLine returns a text without line breaks and other control characters.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case r == utf8.RuneError, r == '\ufeff', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

// escapeMarkdown returns a text without HTML, so that no comment in it is a signature.
func escapeMarkdown(text string) string { return strings.ReplaceAll(text, "<", "&lt;") }

// shorten cuts a text to a number of characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)[:most-1]
	return strings.TrimRight(string(runes), " ") + "…"
}

// cutBytes cuts a text to a number of bytes, between two characters.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most = max(most-len("…"), 0); most > 0 && !utf8.RuneStart(text[most]); {
		most--
	}
	return strings.TrimRight(text[:most], " ") + "…"
}
