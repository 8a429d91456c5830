package strategy

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"catenary/events"
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
	at = invalid.InstanceLocation
	switch k := invalid.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		return append(slices.Clone(at), k.Properties[0]), "there is no such field", true
	case *kind.OneOf:
		return at, "it is neither a number nor a part such as 25%", true
	case *kind.Pattern:
		if _, _, err := events.ParseSemaphore(k.Got); err != nil && slices.Contains(at, "semaphores") {
			return at, err.Error(), true
		}
		return at, fmt.Sprintf("%.64q is not a span of time: write it like 30s, 5m or 1h30m", k.Got), true
	case *kind.Type:
		switch {
		case slices.Contains(k.Want, "boolean"):
			return at, "it is neither true nor false", true
		case slices.Contains(k.Want, "integer"):
			return at, "it is not a whole number", true
		}
	}
	return at, strings.ReplaceAll(invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)), "'", `"`), true
}
