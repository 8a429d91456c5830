package main

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/commands"
	"catenary/es/dispatch"
)

// maxDataBytes bounds what is read of standard input: far above what the bus takes, which says itself what is too much.
const maxDataBytes = 16 << 20

const sendHelp = `Send sends any command, with its data as JSON, and prints the answer.

The data goes to the writer byte for byte. Without --data, send says what the command may hold.

With --durable the command goes into the inbox, and the answer says that it is stored there. It is done even if no writer
runs at the moment. What becomes of it is told by "catenary receipt ID".`

func (a *app) sendCommand() *cobra.Command {
	var data string
	var durable bool
	cmd := &cobra.Command{
		Use: "send AGGREGATE VERB --data JSON", Short: "Send any command", Long: sendHelp, GroupID: groupWrite, Args: takes("AGGREGATE", "VERB"),
		Example: `  catenary send node register --data '{"node":"n1","labels":{"zone":"a"}}'
  catenary send module register --data - < module.json
  catenary send node retire --data '{"node":"n1"}' --durable
  catenary send assignment move --data '{"node":"n1","module":"web","to":"n2"}' --expect-version 3`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeVerbs(args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&data, "data", "", "the command's `JSON`, or - to read it from standard input")
	cmd.Flags().BoolVar(&durable, "durable", false, "send it through the inbox: it is stored now, and done as soon as a writer can")
	cmd.MarkFlagsMutuallyExclusive("durable", "wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		aggregate, verb := args[0], args[1]
		if err := checkWord("aggregate", aggregate); err != nil {
			return err
		}
		if err := checkWord("verb", verb); err != nil {
			return err
		}
		if !cmd.Flags().Changed("data") {
			return missingData(aggregate, verb)
		}
		if err := w.complete(cmd); err != nil {
			return err
		}
		w.durable = durable
		body := []byte(data)
		if data == "-" {
			var err error
			if body, err = a.readData(); err != nil {
				return err
			}
		}
		return a.sendAll(cmd.Context(), w, []sending{{aggregate + " " + verb, dispatch.Request{
			Aggregate: aggregate, Verb: verb, Body: body, ContentType: dispatch.ContentTypeJSON, Options: w.options,
		}}})
	}
	return cmd
}

// readData reads standard input.
func (a *app) readData() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a.Stdin, maxDataBytes+1))
	if err != nil {
		return nil, errors.Wrap(err, "read standard input")
	}
	if len(body) > maxDataBytes {
		return nil, usagef("standard input has more than %d bytes, which is more than any command may hold", maxDataBytes)
	}
	return body, nil
}

// checkWord makes sure that an argument is one word of a subject: another would go to another subject.
func checkWord(what, word string) error {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(word) {
		return usagef("%q is no %s: they are lower-case words, such as %s", word, what, map[string]string{"aggregate": "node", "verb": "register"}[what])
	}
	return nil
}

// missingData says what a command may hold.
func missingData(aggregate, verb string) error {
	verbs := commands.Commands().Verbs()
	i := slices.IndexFunc(verbs, func(v commands.Verb) bool { return v.Aggregate == aggregate && v.Verb == verb })
	if i < 0 {
		if known := completeVerbs([]string{aggregate}); len(known) > 0 {
			return usagef("%s has no command %s: its commands are %s", aggregate, verb, strings.Join(known, ", "))
		}
		return usagef("there is no aggregate %s: they are %s", aggregate, strings.Join(completeVerbs(nil), ", "))
	}
	var fields []string
	for _, f := range verbs[i].Fields {
		name := f.Name + " (" + f.Type + ")"
		if f.Optional {
			name = "[" + name + "]"
		}
		fields = append(fields, name)
	}
	return usagef("%s %s needs --data, a JSON object with %s", aggregate, verb, strings.Join(fields, ", "))
}

// completeVerbs offers aggregates, and then the verbs of the one that was given.
func completeVerbs(args []string) []string {
	var words []string
	for _, v := range commands.Commands().Verbs() {
		switch {
		case len(args) == 0:
			words = append(words, v.Aggregate)
		case len(args) == 1 && v.Aggregate == args[0]:
			words = append(words, v.Verb)
		}
	}
	return slices.Compact(words)
}
