// Package journal stores the records of a run durably and replays them. A journal has one file per
// epoch, a checksum per line, and one writer.
//
// A dispatcher calls Take, which makes it the owner of the run and folds the records of earlier
// dispatchers. Take returns a Journal. The dispatcher then calls Append and Sync repeatedly, and
// acts on records only after Sync has returned nil. It calls Heartbeat every HeartbeatInterval and
// Fenced every few seconds. After ErrFenced it must not touch the run any more. A Follower replays
// the journal for readers and follows it up to a Limit, and a Reader also reads the owner file and
// live.json. Replay is a single Poll of a Follower.
//
//	j, table, report, err := journal.Take(ctx, run, journal.TakeOptions{})
//	if report.Damaged { ask every host about every job, whatever the table says }
//	err = j.Append(records); err = j.Sync()
//	err = j.Close()
//
// The package folds records but does not interpret them otherwise. It does not fence the hosts,
// which the epoch in every launch does.
//
// # Files
//
// journal/000001.jsonl is the file of epoch 1. A line is the CRC-32C of its JSON in eight hex
// digits, a blank, the JSON, and a newline. The first record of a file is KindEpoch. It fixes the
// length and checksum of every older file, so that records which an old dispatcher appends later
// are not part of the run. A copy of that record is in journal/000002.marks, so that damage to one
// line does not undo this. A file without a whole first record belongs to a dispatcher that had not
// begun.
//
// Damage to a line loses only the facts of that line. A last line that was cut off is not damage,
// and neither is a damaged newline. An end that does not look like the beginning of a line is
// damage (see line.go). After damage, a record that does not fit is tried again after the facts
// that it implies (see marks.go), and Table.Damaged stays set for every later dispatcher.
package journal
