// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"bytes"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// Protocol says how abstract operations and errors stand on the wire (FORMAT.md, "protocol").
type Protocol struct {
	ID          string `yaml:"id"`
	Name        string `yaml:"name"`
	SpecVersion string `yaml:"spec_version"`
	// Operations are by the name that steps have.
	Operations map[string]Operation `yaml:"operations"`
	// Errors are the codes of errors by their names.
	Errors map[string]int `yaml:"errors"`
	// Headers go with each request.
	Headers map[string]string `yaml:"headers"`
	// Events says what an event of a stream is.
	Events EventForm `yaml:"events"`
	// State is the path of the state in a task; Transitions are those that may follow each other.
	State       string       `yaml:"state"`
	Final       []string     `yaml:"final"`
	Transitions []Transition `yaml:"transitions"`
	// Names are values that differ between versions of a protocol: {{name.x}}.
	Names map[string]any `yaml:"names"`
}

// Operation is a method of JSON-RPC at one of the URLs of a profile, or a request of HTTP.
type Operation struct {
	Method string `yaml:"method"`
	// URL names one of the profile's: rpc, stream, notification, card.
	URL string `yaml:"url"`
	// HTTP is the method of HTTP for what is no JSON-RPC, as GET.
	HTTP string `yaml:"http"`
	// Path is where it is behind the Partner's URL, if the profile has none, and there is something.
	Path string `yaml:"path"`
	// Below is the path behind the URL of a request that is no JSON-RPC. It may have names of params in braces; the
	// other params are the query of a GET or DELETE, and the body of a POST.
	Below  string         `yaml:"below"`
	Stream bool           `yaml:"stream"`
	Params map[string]any `yaml:"params"`
	// Command is the member of Params with the command: that of a step is put over it.
	Command string `yaml:"command"`
	// Inline are members of the params whose members stand in their place.
	Inline []string `yaml:"inline"`
	// Root is the path of the domain object in the answer: result, if empty.
	Root *string `yaml:"root"`
}

// EventForm says where in the data of an event its parts are.
type EventForm struct {
	Root     string `yaml:"root"`     // of the domain object
	Sequence string `yaml:"sequence"` // its number, from the data's top
	State    string `yaml:"state"`    // the state that it has, from its root
	// Apart are members of the object that may differ when an event is sent again.
	Apart []string `yaml:"apart"`
	// Kinds are the members that name the kind of an object in them, and these names in ACTS.
	Kinds map[string]string `yaml:"kinds"`
}

// Transition is one that the protocol permits. From is empty for the first state.
type Transition struct {
	From    string `yaml:"from"`
	To      string `yaml:"to"`
	Section string `yaml:"section"`
}

// LoadProtocol reads a protocol file.
func LoadProtocol(files fs.FS, name string) (*Protocol, error) {
	content, err := read(files, name)
	if err != nil {
		return nil, err
	}
	var file struct {
		Extension string   `yaml:"extension"`
		Protocol  Protocol `yaml:"protocol"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if file.Protocol.ID == "" {
		return nil, fmt.Errorf("%s: the protocol has no id", name)
	}
	return &file.Protocol, nil
}
