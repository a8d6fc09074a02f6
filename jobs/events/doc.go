// Package events says in a sentence, for people, what a record of the journal says
// (E8), and which records a person wants to hear of without asking. It is where the
// event log of the screen and `dcs-tui events` have their words from.
//
// It neither reads a journal nor cleans anything: hosts' and jobs' words are in its
// texts as they came.
package events
