package cli

import (
	"runtime/debug"
	"strings"
)

// version is what --version and run.toml say of the program: its module version,
// and the commit where the version does not name it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "built from source"
	}
	commit, changed := "", ""
	for _, kv := range info.Settings {
		switch {
		case kv.Key == "vcs.revision":
			commit = kv.Value[:min(12, len(kv.Value))]
		case kv.Key == "vcs.modified" && kv.Value == "true":
			changed = ", changed"
		}
	}
	if commit != "" && !strings.Contains(v, commit) {
		v += ", commit " + commit + changed
	}
	return v
}
