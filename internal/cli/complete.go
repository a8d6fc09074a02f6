package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
)

// setUpFlags has the flags of a command and its subcommands listed in the order of their
// definition. It adds completions to those with a fixed set of values, and to those that
// several commands have.
func setUpFlags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	dirs := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	toml := cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt)
	shared := map[string]cobra.CompletionFunc{"hosts": toml, "cwd": dirs, "run-dir": dirs, "env": completeEnv, "where": completeWhere}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(*choiceFlag); ok {
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp))
		} else if complete := shared[f.Name]; complete != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	for _, c := range cmd.Commands() {
		setUpFlags(c)
	}
}

// completeEnv completes the names of environment variables.
func completeEnv(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, prefix) && run.IsEnvName(name) && !strings.HasPrefix(name, "DCS_") {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeHosts completes the names of the inventory's hosts.
func completeHosts(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	flag, _ := cmd.Flags().GetString("hosts")
	file, err := hosts.FindInventory(flag)
	inv := hosts.Local()
	if err == nil && file != "" {
		inv, _, err = hosts.Load(file)
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, h := range inv.Hosts {
		if strings.HasPrefix(h.Name, prefix) {
			names = append(names, h.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeMany completes every argument with what complete offers for the first one,
// except names that are given already.
func completeMany(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		names, how := complete(cmd, nil, prefix)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), how
	}
}
