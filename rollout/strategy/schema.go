package strategy

import (
	"bytes"
	_ "embed"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed strategy.schema.json
var schemaText []byte

// Schema gives the JSON Schema of a strategy file.
func Schema() []byte { return bytes.Clone(schemaText) }

const schemaName = "strategy.schema.json"

func compiled() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		return nil, errors.NewAssertionErrorWithWrappedErrf(err, "the schema of strategies")
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaName, doc); err != nil {
		return nil, errors.NewAssertionErrorWithWrappedErrf(err, "the schema of strategies")
	}
	s, err := c.Compile(schemaName)
	return s, errors.Wrap(err, "the schema of strategies")
}

// misfit gives where a value does not fit the schema, and why. Of several places it takes the deepest, which says the most.
func misfit(err error) (at []string, why string, ok bool) {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil, "", false
	}
	for len(invalid.Causes) > 0 {
		if _, either := invalid.ErrorKind.(*kind.OneOf); either {
			break // what each way lacks says less than that none fits
		}
		deepest := invalid.Causes[0]
		for _, c := range invalid.Causes[1:] {
			if len(c.InstanceLocation) > len(deepest.InstanceLocation) {
				deepest = c
			}
		}
		invalid = deepest
	}
	if unknown, extra := invalid.ErrorKind.(*kind.AdditionalProperties); extra {
		return append(append([]string{}, invalid.InstanceLocation...), unknown.Properties[0]), "there is no such field", true
	}
	if _, either := invalid.ErrorKind.(*kind.OneOf); either {
		return invalid.InstanceLocation, "it is neither a number nor a part such as 25%", true
	}
	why = strings.ReplaceAll(invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)), "'", `"`)
	return invalid.InstanceLocation, why, true
}
