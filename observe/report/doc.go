// Package report writes a run as a single HTML file that needs no network, server, or other file.
// Write renders an Input. html/template renders the parts that work without scripts. The script of
// the page draws the rest from compressed data in the page.
//
// Nothing in the data is trusted. All texts of jobs and hosts pass through text.Clean, the
// data is in base64, the script only ever sets text, and the page's own policy forbids other
// scripts, styles, and any connection.
package report
