package tui

import (
	"context"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Choose shows a list below the text on the terminal. It returns when the user presses one of keys
// on a row, or leaves the list; key is then "". title and footer are lines above and below the
// rows. The caller must have cleaned all texts.
func Choose(ctx context.Context, o Options, title string, rows []string, footer string,
	keys ...string) (row int, key string, err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	c := &chooser{m: newModel(o, time.Now), title: title, rows: rows, footer: footer, keys: keys}
	if _, err := tea.NewProgram(c, o.programOptions(ctx)...).Run(); err != nil && ctx.Err() == nil {
		return 0, "", err
	}
	return c.cursorRow, c.key, nil
}

// chooser is the model of Choose.
type chooser struct {
	m             *model // for drawing
	title, footer string
	rows, keys    []string
	w             int // width of the terminal in cells; 0: not known yet
	viewport
	key  string // the key that was pressed
	done bool
}

func (c *chooser) Init() tea.Cmd { return nil }

func (c *chooser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.w, c.h = msg.Width, max(1, min(len(c.rows), msg.Height-3))
	case tea.KeyPressMsg:
		switch key := msg.String(); {
		case slices.Contains(c.keys, key):
			c.key, c.done = key, true
			return c, tea.Quit
		case slices.Contains([]string{"q", "esc", "ctrl+c", "ctrl+d"}, key):
			c.done = true
			return c, tea.Quit
		default:
			c.m.pressIn(moveKeys(func() int { return c.h }, func(_ *model, by int) { c.cursorRow += by }), key)
		}
	}
	c.clampCursor(len(c.rows))
	return c, nil
}

func (c *chooser) View() tea.View {
	if c.w == 0 {
		return tea.NewView("")
	}
	lines := append([]string{styleFaint.Render(c.m.cut("  "+c.title, c.w-1))},
		c.viewport.drawRows(len(c.rows), func(i int) string {
			if i == c.cursorRow && !c.done {
				return styleCursor.Render(c.m.fit(c.m.glyphs.cursor+" "+c.rows[i], c.w-1))
			}
			return c.m.cut("  "+c.rows[i], c.w-1)
		})...)
	if c.done { // the list stays on the terminal
		return tea.NewView(strings.Join(lines, "\n") + "\n")
	}
	return tea.NewView(strings.Join(append(lines, styleFaint.Render(c.m.cut("  "+c.footer, c.w-1))), "\n"))
}
