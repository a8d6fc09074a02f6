package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]*debug.BuildInfo{
		"built from source": {},
		"v1.2.3":            {Main: debug.Module{Version: "v1.2.3"}},
		"built from source, commit 0123456789ab, changed": {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{commit, changed}},
		"v0.0.0-20260101000000-0123456789ab+dirty": {Main: debug.Module{Version: "v0.0.0-20260101000000-0123456789ab+dirty"},
			Settings: []debug.BuildSetting{commit, changed}},
	} {
		if got := versionOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
