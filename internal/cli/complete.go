package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/hosts"
)

// completeFlags has the shell complete the values of the flags of a command and those
// below it: where there is a fixed set of them, and of flags that several commands have.
func completeFlags(cmd *cobra.Command) {
	shared := map[string]cobra.CompletionFunc{"hosts": tomlFiles, "cwd": dirsOnly, "run-dir": dirsOnly, "env": completeEnv}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(*choiceFlag); ok {
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp))
		} else if complete := shared[f.Name]; complete != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

func dirsOnly(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func tomlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeEnv completes the names of the present environment.
func completeEnv(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, prefix) && envName(name) && !strings.HasPrefix(name, "DCS_") {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeHosts completes the names of the inventory's hosts that are not there yet.
func completeHosts(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
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
		taken := false
		for _, arg := range args {
			taken = taken || arg == h.Name
		}
		if !taken && strings.HasPrefix(h.Name, prefix) {
			names = append(names, h.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
