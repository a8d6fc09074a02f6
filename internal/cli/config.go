package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/tui"
)

// screenOptions returns the options of a screen: those of the flags, of the environment, and of the
// user's configuration file.
func (a *app) screenOptions(flags screenFlags) (tui.Options, error) {
	var o tui.Options
	err := readScreenConfig(filepath.Join(hosts.ConfigDir(), "dcs-tui", "config.toml"), &o)
	o.ASCII = *cmp.Or(flags.ascii, &o.ASCII) || a.con.ascii
	o.Mouse = *cmp.Or(flags.mouse, &o.Mouse)
	if os.Getenv("NO_COLOR") != "" {
		o.Colors = "none"
	}
	return o, err
}

// readScreenConfig applies the settings of a file. A missing file has none. An error names the first
// line that is wrong.
func readScreenConfig(path string, o *tui.Options) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return text.Errorf("read the settings of the screen: %w", err)
	}
	var root map[string]any
	if _, err := toml.Decode(string(data), &root); err != nil {
		if bad, ok := errors.AsType[toml.ParseError](err); ok {
			return text.Errorf("%s:%d: %s", text.Path(path), bad.Position.Line, text.Line(bad.Message))
		}
		return text.Errorf("%s: %w", text.Path(path), err)
	}
	var first error
	line := 0
	check := func(table, key string, err error) {
		if at := hosts.KeyLine(data, table, key); err != nil && (first == nil || at < line) {
			first, line = text.Errorf("%s:%d: %w", text.Path(path), at, err).
				WithAdvice("dcs-tui help screen lists the settings"), at
		}
	}
	for _, key := range slices.Sorted(maps.Keys(root)) {
		table, is := root[key].(map[string]any)
		switch {
		case !is:
			check("", key, o.Set("", key, root[key]))
		case len(table) == 0:
			check(key, "", tui.CheckSettingsTable(key))
		}
		for _, k := range slices.Sorted(maps.Keys(table)) {
			check(key, k, o.Set(key, k, table[k]))
		}
	}
	return first
}
