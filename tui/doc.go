// Package tui is the screen. It draws a runview.Source and turns keys into its actions. It
// decides nothing about jobs and hosts, and opens no connection and no file of a run: what
// it shows comes from the source's pictures, and what it does is a runview.Action. Only
// outside.go starts programs: a pager, and a shell on a host, which have the terminal in
// the meantime. The package alone imports Bubble Tea and Lip Gloss.
//
// One goroutine, Bubble Tea's, owns the model. One command at a time looks at the source
// (look.go); others carry out actions and reads and come back as messages. A pane
// (layout.go) is a part of the screen with its own keys. Lists share viewport, table, and
// column (table.go), long texts share viewer (viewer.go).
//
// # Rules
//
// Comments and tests cite these rules by number.
//
//  1. The goroutine that draws never waits for the source: what may take long is a command.
//  2. At most one look at the source is under way, and no more than four come in a second
//     unless a key needs one.
//  3. What changes nothing is not drawn again, and the work for a key or a frame does not
//     grow with the number of jobs: less than 16 ms with a million.
//  4. A cursor stays on its item, not on its row. A key never acts on an item that has just
//     moved under the cursor.
//  5. The header always shows whether the data is live, how old it is, and what stands in
//     the way of the run.
//  6. A job shows which try it is at, and of how many.
//  7. What failed is grouped by cause, with the last line of stderr.
//  8. The 16 colors of the terminal are used on its own background. Color is never the only
//     signal, and all works without UTF-8.
//  9. Nothing that runs is ended without a question that says what is lost. A cancel can be
//     undone for ten seconds.
//  10. Texts from jobs, hosts, and users are cleaned before they are shown.
//  11. Whatever ends the screen, the terminal is as it was.
//  12. One table of bindings (keys.go) says what each key does. The footer and the help are
//     made from it.
package tui
