// Package helper brings the helper to a host and speaks with it: it is the
// hosts.Connector of the dispatcher, the same over every Link. It also frames the messages
// of package hosts on a byte stream, for both ends of a channel (hosts/helper/remote is the
// other one).
//
// Connect opens a link, runs the one fixed text of bootstrap.go there, sends our own binary
// when the host does not have it, and exchanges Open and Hello. What it returns moves
// messages and nothing else: it sends no beats or pings, knows no jobs, and does not connect
// again by itself. Standard output of the far end is trusted only after a line that begins
// with a random nonce, because login shells print noise; what is noise is bounded. Every
// step has a deadline whose remedy is closing the link.
//
// There is one stream of frames in each direction. Both ends run the same build; it is not a
// storage format. A stream begins with one line that names the version and the exact shape
// of every message:
//
//	dcs-wire 1 5a0c71ee
//
// Then come frames: a line of text with the sequence number (1, 2, 3 …), the message's word,
// the number of bytes of the payload, and the CRC-32C in hex of the three fields before it
// (as text, blanks included) and the payload; then the payload and a newline:
//
//	17 launch 5321 1a2b3c4d
//
// The payload holds the fields of the message in the order in which its type declares them,
// without names: integers as zigzag varints, floats as 8 bytes little-endian, booleans as one
// byte, strings and byte slices as a length and the bytes themselves, so that any bytes
// survive (JSON would replace what is not UTF-8 in commands, paths and lines of stderr).
// Lists and maps have a count first, pointers a byte that says whether there is a value. An
// empty list or map arrives as nil. The codec is derived from the types once: a field added
// to a message travels without further work, and the shape in the first line changes, so
// that two builds that differ refuse each other instead of misreading.
package helper
