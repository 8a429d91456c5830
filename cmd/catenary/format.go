package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// format is how data is written to standard output.
type format string

// The formats of every read.
const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
	formatName  format = "name"
)

// formatValue is a flag that holds one of some formats.
type formatValue struct {
	value *format
	known []string
}

var _ pflag.Value = formatValue{}

// String gives the format.
func (f formatValue) String() string {
	if f.value == nil {
		return ""
	}
	return string(*f.value)
}

// Set checks the format.
func (f formatValue) Set(text string) error {
	if !slices.Contains(f.known, text) {
		return usagef("it is one of %s", strings.Join(f.known, ", "))
	}
	*f.value = format(text)
	return nil
}

// Type is shown in the help.
func (f formatValue) Type() string { return "format" }

// formatFlag adds -o to a command. Without a choice it has the formats of every read.
func formatFlag(cmd *cobra.Command, standard format, choice ...format) *format {
	if len(choice) == 0 {
		choice = []format{formatTable, formatJSON, formatYAML, formatName}
	}
	f := formatValue{value: &standard}
	for _, c := range choice {
		f.known = append(f.known, string(c))
	}
	cmd.Flags().VarP(f, "output", "o", "output: "+strings.Join(f.known, ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.known, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag stands a line above
	}
	return &standard
}
