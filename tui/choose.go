package tui

import (
	"context"
	"os/signal"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Choices are the rows of a list, with a line above and one below. The texts must be clean.
type Choices struct {
	Title, Footer string
	Rows          []Choice
}

// Choice is a row of a list. The cursor stays on its ID when the list is read again.
type Choice struct{ ID, Text string }

// ChoiceKey is a key that chooses the row under the cursor.
type ChoiceKey struct {
	Key, Help string
	Question  string // asked before, with the ID of the row after it; "": none
}

// Choose shows a list below the text on the terminal, and reads it again every few seconds. It returns
// when the user presses one of keys on a row, or leaves the list; key is then "".
func Choose(o Options, load func() Choices, keys ...ChoiceKey) (id, key string, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	defer stop()
	c := &chooser{m: newModel(o, time.Now), load: load, keys: keys, list: load()}
	if _, err := tea.NewProgram(c, o.programOptions(ctx)...).Run(); err != nil && ctx.Err() == nil {
		return "", "", err
	}
	if len(c.list.Rows) == 0 || c.key == "" {
		return "", "", nil
	}
	return c.list.Rows[c.cursorRow].ID, c.key, nil
}

// chooser is the model of Choose.
type chooser struct {
	m        *model // for drawing
	load     func() Choices
	keys     []ChoiceKey
	list     Choices
	w, maxH  int        // size of the terminal in cells; 0: not known yet
	asks     *ChoiceKey // its question is asked; nil: none
	showHelp bool
	viewport
	key  string // the key that was pressed
	done bool
}

// minReload is the minimum time between two reads of the list. A read that takes long is repeated less
// often, so that an open list takes at most a twentieth of a core.
const minReload = 2 * time.Second

// choicesRead is a list that was read again, and how long that took.
type choicesRead struct {
	list Choices
	took time.Duration
}

// reload reads the list after a delay.
func (c *chooser) reload(delay time.Duration) tea.Cmd {
	load := c.load
	return tea.Tick(max(minReload, delay), func(time.Time) tea.Msg {
		begun := time.Now()
		return choicesRead{load(), time.Since(begun)}
	})
}

func (c *chooser) Init() tea.Cmd { return c.reload(0) }

func (c *chooser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.w, c.maxH = msg.Width, msg.Height
	case choicesRead:
		if c.done { // the row is chosen
			return c, nil
		}
		c.replace(msg.list)
		cmd = c.reload(20 * msg.took)
	case tea.KeyPressMsg:
		cmd = c.press(msg.String())
	}
	c.h = max(1, min(len(c.list.Rows), c.maxH-2-len(c.footer())))
	c.clampCursor(len(c.list.Rows))
	return c, cmd
}

// replace replaces the list. The cursor stays on its row, and a question is about that row: it is
// withdrawn if the row has gone.
func (c *chooser) replace(list Choices) {
	if len(c.list.Rows) > 0 {
		id := c.list.Rows[c.cursorRow].ID
		if i := slices.IndexFunc(list.Rows, func(r Choice) bool { return r.ID == id }); i >= 0 {
			c.cursorRow = i
		} else {
			c.asks = nil
		}
	}
	c.list = list
}

func (c *chooser) press(key string) tea.Cmd {
	if asked := c.asks; asked != nil {
		c.asks = nil
		if key == "y" {
			c.key, c.done = asked.Key, true
			return tea.Quit
		}
		return nil
	}
	if i := slices.IndexFunc(c.keys, func(k ChoiceKey) bool { return k.Key == key }); i >= 0 && len(c.list.Rows) > 0 {
		if c.keys[i].Question != "" {
			c.asks = &c.keys[i]
			return nil
		}
		c.key, c.done = key, true
		return tea.Quit
	}
	switch {
	case key == "?" || key == "esc" && c.showHelp:
		c.showHelp = !c.showHelp
	case slices.Contains([]string{"q", "esc", "ctrl+c", "ctrl+d"}, key):
		c.done = true
		return tea.Quit
	default:
		c.m.pressIn(c.moveKeys(), key)
	}
	return nil
}

func (c *chooser) moveKeys() []binding {
	return moveKeys(func() int { return c.h }, func(_ *model, by int) { c.cursorRow += by })
}

// footer returns the lines below the rows: a question, all keys, or the most useful ones.
func (c *chooser) footer() []string {
	switch {
	case c.asks != nil:
		return []string{styleWarn.Render(c.m.cut("  "+c.asks.Question+" "+c.m.clean(c.list.Rows[c.cursorRow].ID)+
			"? y: yes   any other key: no", max(0, c.w-1)))}
	case !c.showHelp:
		return []string{styleFaint.Render(c.m.cut("  "+c.list.Footer, max(0, c.w-1)))}
	}
	var out []string
	add := func(key, help string) {
		out = append(out, c.m.cut("  "+styleBold.Render(c.m.fit(key, 14))+help, max(0, c.w-1)))
	}
	for _, k := range c.keys {
		add(k.Key, k.Help)
	}
	for _, b := range c.m.withKeys(c.moveKeys()) {
		add(strings.Join(b.keys, " "), b.help)
	}
	add("q esc", "leave the list")
	return firstLines(out, max(1, c.maxH-4))
}

func (c *chooser) View() tea.View {
	if c.w == 0 {
		return tea.NewView("")
	}
	lines := append([]string{styleFaint.Render(c.m.cut("  "+c.list.Title, c.w-1))},
		c.viewport.drawRows(len(c.list.Rows), func(i int) string {
			if i == c.cursorRow && !c.done {
				return styleCursor.Render(c.m.fit(c.m.glyphs.cursor+" "+c.list.Rows[i].Text, c.w-1))
			}
			return c.m.cut("  "+c.list.Rows[i].Text, c.w-1)
		})...)
	if c.done { // the list stays on the terminal
		return tea.NewView(strings.Join(lines, "\n") + "\n")
	}
	return tea.NewView(strings.Join(append(lines, c.footer()...), "\n"))
}
