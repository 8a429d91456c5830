package main

import (
	"encoding/json"
	"runtime"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/aggregates"
	"catenary/internal/run"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Show the program's version", Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := struct {
			Version string `json:"version"`
			// Rules is the version of the rules that commands are decided by.
			Rules    int    `json:"rules"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{run.Version(), aggregates.RulesVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		body, err := json.Marshal(v)
		if err != nil {
			return errors.Wrap(err, "encode the version")
		}
		return a.printOne(*output, []string{"VERSION", "RULES", "GO", "PLATFORM"}, line{
			name: v.Version, json: body, cells: func() []string { return []string{v.Version, strconv.Itoa(v.Rules), v.Go, v.Platform} },
		})
	}
	return cmd
}
