// Package tui is the screen. It draws a runview.Source and turns keys into its actions. It decides
// nothing about jobs and hosts, and opens no connection and no file of a run: everything it shows
// comes from the source's snapshots (runview.Snapshot), and everything it does is an action.Request.
// Only programs.go starts programs: a pager, and a shell on a host, which have the terminal in the
// meantime. No other package imports Bubble Tea and Lip Gloss.
//
// One goroutine, Bubble Tea's, owns the model. One command at a time requests a snapshot
// (snapshots.go). Other commands execute actions and reads and return messages. A pane (layout.go)
// is a part of the screen with its own keys. Lists share viewport, table, and column (table.go),
// long texts share viewer (viewer.go).
//
// # Rules
//
// Comments and tests cite these rules by number.
//
//  1. The goroutine that draws never waits for the source: whatever may take long is a command.
//  2. At most one request for a snapshot is in progress, and at most four are made per second
//     unless a key needs one.
//  3. A message that changes nothing causes no redraw. The work for a key or a frame does not
//     grow with the number of jobs: it takes less than 16 ms with a million.
//  4. A cursor stays on its item, not on its row. A key never acts on an item that has just
//     moved under the cursor.
//  5. The header always shows whether the data is live, how old it is, and what prevents the
//     run from progressing.
//  6. A job shows the number of its current try and of all its tries.
//  7. Failures are grouped by cause, with the last line of stderr.
//  8. The screen uses the 16 colors of the terminal on its own background; only the heat map uses
//     256 if there are so many. Color is never the only signal, and everything works without UTF-8.
//  9. No running job is ended without a question that describes what is lost. A cancel can be
//     undone for ten seconds.
//  10. Texts from jobs, hosts, and users are cleaned before they are shown.
//  11. Whatever ends the screen, the terminal is restored.
//  12. One table (keytable.go) defines the keys and their meanings, which are the same in all views.
//     The footer, the help, and the list in docs/screen.md are generated from it and the bindings.
package tui
