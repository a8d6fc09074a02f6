// Package report writes a run as one HTML file that needs nothing else: no network, no
// server, no other file. What a reader without scripts sees, html/template renders. The rest
// is drawn by the script of the page from data that the page carries, compressed.
//
// Nothing in the data is trusted. All texts of jobs and hosts pass through jobs.Clean, the
// data is in base64, the script only ever sets text, and the page's own policy forbids other
// scripts, styles, and any connection.
package report
