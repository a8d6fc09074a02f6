package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/jobs/runview"
	"dcs-tui/tui"
)

// screenLeft is how a screen was left.
type screenLeft struct {
	last *runview.Picture // the newest that was seen; may be nil
}

// drawScreen draws the screen until it is left; the terminal is then as it was.
func (a *app) drawScreen(src runview.Source, keys *os.File, o screenOptions) (screenLeft, error) {
	given, err := ttyguard.Start(keys, a.stdout)
	if err != nil { // then only we ourselves give the terminal back
		given = func() {}
	}
	left, err := tui.Run(context.Background(), tui.Options{
		Source: src, In: keys, Out: a.stdout, ASCII: a.con.OnlyASCII() || o.ascii, NoColor: os.Getenv("NO_COLOR") != "",
		Mouse: o.mouse, Signals: true, Suspended: ttyguard.Asleep,
	})
	given()
	var crash *tui.Crash
	if errors.As(err, &crash) { // whoever is to mend it needs more than its words
		for line := range strings.Lines(crash.Stack) {
			a.con.Line(console.CleanLine(strings.TrimRight(line, "\n")))
		}
	}
	return screenLeft{left.Last}, err
}
