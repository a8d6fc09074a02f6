package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"dcs-tui/hosts"
	"dcs-tui/tui"
)

// TestScreenConfig checks the settings of a configuration file, and that the error of a wrong one
// names the file and the first line that is wrong.
func TestScreenConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for _, c := range []struct{ text, err string }{
		{"", ""},
		{"mouse = true\nview = \"hosts\"\n\n[columns]\njobs = [\"ID\", \"NAME\"]\n", ""},
		{"# mine\nmosue = true\n", `config.toml:2: there is no setting "mosue" (did you mean "mouse"?)`},
		{"mouse = 1\nview = \"none\"\n", "config.toml:1: mouse must be true or false"},
		{"mouse = true\n[columns]\nhosts = [\"USED\"]\njob = []\n", `config.toml:4: there is no view "job"`},
		{"mouse = true\n\n[colums]\njobs = []\n", `config.toml:4: there is no table "colums"`},
		{"mouse = true\n\n[colums]\n", `config.toml:3: there is no table "colums" (did you mean "columns"?)`},
		{"mouse = true\n[columns]\n[keys]\n", ""},
		{"mouse = true\nview = \n", "config.toml:2: "},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var o tui.Options
		err := readScreenConfig(path, &o)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got %v, want %q", c.text, err, c.err)
		case c.err == "" && o.Mouse != (c.text != ""):
			t.Errorf("%q: the mouse is %v", c.text, o.Mouse)
		}
	}
	if err := readScreenConfig(filepath.Join(t.TempDir(), "none.toml"), &tui.Options{}); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

// TestScreenFlagsOverrideTheFile checks that a flag that is given counts instead of the setting, also
// if it turns something off.
func TestScreenFlagsOverrideTheFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	must(t, os.Mkdir(filepath.Join(hosts.ConfigDir(), "dcs-tui"), 0o700))
	writeFile(t, hosts.ConfigDir(), "dcs-tui/config.toml", "mouse = true\n")
	for flag, want := range map[string]bool{"": true, "--mouse": true, "--mouse=false": false} {
		var flags screenFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.addFlags(fs)
		must(t, fs.Parse(strings.Fields(flag)))
		o, err := newApp().screenOptions(flags)
		must(t, err)
		same(t, "the mouse with "+flag, o.Mouse, want)
	}
}
