package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
)

// plan says what matched, what is new and what is gone, before anything starts.
func (m *rematch) plan(t *jobs.Table, files []string) []string {
	names := slices.Clone(files)
	for i, name := range names {
		if name == stdinFile {
			names[i] = "standard input"
		}
	}
	lines := []string{console.CleanLine(strings.Join(names, ", ")) + ": " + jobs.Plural(m.total, "job")}
	if m.renamed != "" {
		lines[0] += "; compared with those of " + console.CleanLine(m.renamed) + ", from which the run was made"
	}
	say := func(n int, format string, args ...any) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("  %6d ", n)+fmt.Sprintf(format, args...))
		}
	}
	say(m.succeeded, "in the run and succeeded: not run again")
	rounds := m.rounds(t)
	say(len(rounds), "in the run and over without success: run again (%s)", shortRanges(rounds))
	say(m.open, "in the run and queued or running")
	say(len(m.fresh), "new: added (%s)", m.freshText())
	left := slices.DeleteFunc(slices.Clone(m.gone), func(id jobs.ID) bool {
		_, ends := slices.BinarySearch(m.queued, id)
		return ends
	})
	say(len(left), "of the run %s not in the file any more: left as %s (%s)", jobs.Verb(len(left), "is", "are"), jobs.Verb(len(left), "it is", "they are"), shortRanges(left))
	say(len(m.queued), "of the run %s not in the file any more and still queued: cancelled (%s)", jobs.Verb(len(m.queued), "is", "are"), shortRanges(m.queued))
	say(len(m.others), "of the run %s of %s and not in this file: left as %s (%s)", jobs.Verb(len(m.others), "is", "are"),
		console.CleanLine(someNames(m.otherFiles, 4)), jobs.Verb(len(m.others), "it is", "they are"), shortRanges(m.others))
	for _, c := range m.changes {
		say(len(c.ids), "with other options from now on: %s", console.CleanLine(c.String()))
	}
	for _, p := range slices.Sorted(maps.Keys(m.ranked)) {
		say(len(m.ranked[p]), "with priority %d from now on (%s)", p, shortRanges(m.ranked[p]))
	}
	say(m.running, "running with the options that they were started with")
	for _, key := range slices.Sorted(maps.Keys(m.kept)) {
		say(m.kept[key], "with another %s in the file, which cannot be changed: they keep theirs", key)
	}
	return lines
}

// intent is the same in a question.
func (m *rematch) intent(t *jobs.Table) string {
	var parts []string
	if n := len(m.rounds(t)); n > 0 {
		parts = append(parts, "run "+jobs.Plural(n, "job")+" again")
	}
	if n := len(m.fresh); n > 0 {
		parts = append(parts, "add "+strconv.Itoa(n))
	}
	if n := len(m.queued); n > 0 {
		parts = append(parts, "cancel "+strconv.Itoa(n))
	}
	if len(parts) == 0 {
		parts = append(parts, "change options")
	}
	return strings.Join(parts, ", ")
}

func shortRanges(ids []jobs.ID) string {
	text := jobs.RangesOf(ids).String()
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return text
}

// freshShown is how many new jobs are shown, shortened to so many runes each.
const freshShown, freshWidth = 3, 60

// freshText shows the first of the new jobs.
func (m *rematch) freshText() string {
	var list []string
	for i, s := range m.fresh {
		if i == freshShown {
			list = append(list, "…")
			break
		}
		list = append(list, console.ShortenTo(console.CleanLine(s.Title()), freshWidth))
	}
	return strings.Join(list, "; ")
}
