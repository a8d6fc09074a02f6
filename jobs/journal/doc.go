// Package journal stores the facts of a run durably and gives them back: one
// file per epoch, a checksum per line, one writer.
//
// A dispatcher calls Take, which makes it the run's owner and folds what earlier
// ones wrote, and then, again and again, Append, Sync, and only after Sync has
// returned nil acts on what it recorded. Beat is called every BeatEvery and
// Fenced every few seconds; after ErrFenced nothing more may be done to the run.
// Follower is for readers: it replays the journal and follows it, as far as Observe says
// that it is durable. Replay is one Poll of it.
//
//	j, table, report, err := journal.Take(ctx, run, journal.TakeOptions{})
//	if report.Damaged { ask every host about every job, whatever the table says }
//	err = j.Append(records); err = j.Sync()
//	err = j.Close()
//
// The package knows nothing about what records mean beyond Fold, and does not fence
// the hosts: the epoch in every launch does that.
//
// # Files
//
// journal/000001.jsonl is the file of epoch 1. A line is the CRC-32C of its JSON
// in eight hex digits, a blank, the JSON, a newline. The first record of a file
// is KindEpoch and fixes the length and checksum of every older file: what an old
// dispatcher that wakes up appends later is not part of the run. That record stands in
// journal/000002.marks, too, so that no damage to one line lets it in. A file whose first
// record was never completed belongs to a dispatcher that had not begun.
//
// What is damaged costs the facts of its own line. A line that was cut off at the
// end is no damage, and neither is a newline that is another byte; an end that does not
// look like the beginning of a line is (see line.go). After damage a
// record that does not fit is tried again behind the facts that it proves (see
// marks.go), and Table.Damaged stays set for every later dispatcher.
package journal
