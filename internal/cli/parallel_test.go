package cli

import (
	"errors"
	"strings"
	"testing"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
)

// TestSlotsOfParallel checks that --jobs accepts what GNU parallel's -j means on every host, and
// refuses the rest with what to use instead.
func TestSlotsOfParallel(t *testing.T) {
	for s, want := range map[string]hosts.SlotRule{"100%": {}, "+0": {}, "8": {Fixed: 8}, "-1": {Less: 1}} {
		if got, err := parseSlots(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"0", "50%", "150%", "0%", "+1", "+50%", "+"} {
		_, err := parseSlots(s)
		var advised *text.Error
		if !errors.As(err, &advised) || !strings.Contains(advised.Advice, "number of slots") {
			t.Errorf("%s: %v; want an error with advice", s, err)
		}
	}
	for _, s := range []string{"", "-", "00", "x", "1.5", "--1", "99999999"} {
		if _, err := parseSlots(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

// TestExportedFunctionsAreNamed checks the error for --env NAME if NAME is a function that bash has
// exported. It names the function as not passed, and does not advise the user to export it.
func TestExportedFunctionsAreNamed(t *testing.T) {
	lookup := func(name string) (string, bool) { return "() {  echo; }", name == "BASH_FUNC_doit%%" }
	_, _, err := run.ParseEnv([]string{"doit"}, lookup)
	var advised *text.Error
	if !errors.As(err, &advised) || !strings.Contains(err.Error(), "exported function") ||
		strings.Contains(advised.Advice, "export it") {
		t.Errorf("--env doit: %v", err)
	}
}
