// Package rundir makes, finds and opens run directories: the
// directory dcs-runs/<name> that holds everything a run was asked and did.
//
//	nonce        random hex; a host that reads it there sees the same directory
//	run.toml     what was asked (Asked), written once, with a checksum
//	jobs.jsonl   accepted specifications, appended in blocks, a checksum a line
//	jobs-000002.jsonl …  those that a later epoch's dispatcher has added
//	owner        who dispatches (package jobs/journal)
//	live.json    what the dispatcher knows beside the journal (package jobs/live)
//	journal/     facts, one file an epoch (package jobs/journal)
//	attempts/    claims, outputs and sentinels, written by the hosts
//	hosts/       what each host's helper said
//
// It knows names, modes and durability, and nothing about what jobs mean or who may
// dispatch: use jobs/journal.Take before writing to a run that exists.
package rundir
