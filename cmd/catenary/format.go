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

func formats() []string {
	return []string{string(formatTable), string(formatJSON), string(formatYAML), string(formatName)}
}

var _ pflag.Value = (*format)(nil)

// String gives the format.
func (f *format) String() string { return string(*f) }

// Set checks the format.
func (f *format) Set(text string) error {
	if !slices.Contains(formats(), text) {
		return usagef("it is one of %s", strings.Join(formats(), ", "))
	}
	*f = format(text)
	return nil
}

// Type is shown in the help.
func (f *format) Type() string { return "format" }

// formatFlag adds -o to a command.
func formatFlag(cmd *cobra.Command, standard format) *format {
	f := standard
	cmd.Flags().VarP(&f, "output", "o", "output: "+strings.Join(formats(), ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag stands a line above
	}
	return &f
}
