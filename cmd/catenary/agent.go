package main

import (
	"encoding/json"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/embedded"
	"catenary/es"
)

func (a *app) agentCommand() *cobra.Command {
	return group(&cobra.Command{Use: "agent", Short: "Let agents connect", GroupID: groupRun}, a.agentCredentialsCommand())
}

func (a *app) agentCredentialsCommand() *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use: "credentials NODE", Short: "Make credentials for the agent of a node", Args: takes("NODE"),
		Long: `Credentials makes a user and a password for the agent of a node, and writes them to standard output, this once. With them the agent can hear
what its own node is told and report about it, and do nothing else. Those that it had before are no longer taken. The server of catenary up
takes them within some seconds, also while it runs.`,
		Example: "  catenary agent credentials n1 --store /var/lib/catenary > n1.json\n  agent --node n1 --state /var/lib/catenary-agent --credentials n1.json --server nats://HOST:4222",
	}
	cmd.Flags().StringVar(&store, "store", defaultStore, "the `directory` of catenary up")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := es.CheckName("node", args[0]); err != nil {
			return err
		}
		if err := notEmpty(map[string]string{"store": store}); err != nil {
			return err
		}
		c, err := embedded.AddAgent(store, es.EscapeToken(args[0]))
		if err != nil {
			return err
		}
		body, err := json.Marshal(c)
		if err == nil {
			_, err = a.Stdout.Write(append(body, '\n'))
		}
		return errors.Wrap(err, "write the credentials")
	}
	return cmd
}
