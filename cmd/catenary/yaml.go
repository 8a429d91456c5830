package main

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"gopkg.in/yaml.v3"
)

// yamlDocument gives a JSON value as YAML: same order, and every text as the text it is.
func yamlDocument(raw []byte) ([]byte, error) {
	n, err := yamlNode(raw)
	if err != nil {
		return nil, err
	}
	return encodeYAML(n)
}

// yamlItem gives a JSON value as one item of a YAML list, so that items written one after another make the list.
func yamlItem(raw []byte) ([]byte, error) {
	n, err := yamlNode(raw)
	if err != nil {
		return nil, err
	}
	return encodeYAML(&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{n}})
}

func encodeYAML(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

func yamlNode(raw []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	n, err := yamlValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after its JSON value")
	}
	return n, nil
}

// yamlValue goes through the tokens: a map in between would lose the order of the fields.
func yamlValue(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if v == '[' {
			n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		for d.More() {
			// In an object names and values take turns.
			item, err := yamlValue(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token()
		return n, err
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if !plainYAML(v) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: map[bool]string{true: "true", false: "false"}[v]}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

// plainYAML says whether a text may stand without quotes. Readers differ in what they take for a number, a truth or a
// time, so only what begins like a word and is none of the words of any YAML version is left plain.
func plainYAML(s string) bool {
	words := []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./@-]*$`).MatchString(s) && !slices.Contains(words, strings.ToLower(s))
}
