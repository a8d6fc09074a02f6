// Package rundir creates, finds, and opens run directories, dcs-runs/<name>, which hold all
// files of a run.
//
//	nonce        random hex, with which hosts recognize the directory
//	format       the version of the run, which every program checks first
//	run.toml     the settings of the run (Asked), written once, with a checksum
//	jobs.jsonl   accepted specifications, appended in blocks, with a checksum per line
//	jobs-000002.jsonl …  those that a dispatcher of a later epoch added
//	owner        who dispatches the run (package jobs/journal)
//	live.json    what the dispatcher knows besides the journal (package jobs/live)
//	journal/     records, one file per epoch (package jobs/journal)
//	attempts/    claims, outputs, and sentinels, written by the hosts
//	hosts/       messages of each host's helper
//
// The package handles names, modes, and durability. It does not check who may dispatch the run:
// call jobs/journal.Take before writing to an existing run.
package rundir
