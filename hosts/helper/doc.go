// Package helper starts the helper on a host and communicates with it. New returns the
// hosts.Connector of the dispatcher, which works over every hosts.Link. NewReader and NewWriter
// frame the messages of package hosts on a byte stream, for both ends of a channel. The other end
// is in hosts/helper/remote.
//
// Connect opens a link, runs the fixed text of bootstrap.go there, sends our own binary if the host
// does not have it, and exchanges Open and Hello. It returns a hosts.Worker, which only moves
// messages: it sends no heartbeats or pings, knows nothing about jobs, and does not reconnect.
// Standard output of the far end is trusted only after a line that begins with a random nonce,
// because login shells print other text, whose length is limited. Every step has a timeout, after
// which the link is closed.
//
// There is one stream of frames in each direction. Both ends run the same build, and the format is
// never stored. A stream begins with one line that names the version and the exact shape of every
// message:
//
//	dcs-wire 1 5a0c71ee
//
// Frames follow. A frame begins with a line of text that holds the sequence number (1, 2, 3 …), the
// message's kind, the number of bytes of the payload, and a CRC-32C in hex. The CRC covers the
// three fields before it (as text, with blanks) and the payload. Then come the payload and a
// newline:
//
//	17 launch 5321 1a2b3c4d
//
// The payload holds the fields of the message in the order in which its type declares them, without
// names. Integers are zigzag varints, floats are 8 bytes little-endian, booleans are one byte, and
// strings and byte slices are a length and the bytes themselves. Any bytes therefore survive,
// whereas JSON would replace bytes that are not UTF-8 in commands, paths, and lines of stderr.
// Lists and maps begin with a count, and pointers with a byte that tells whether there is a value.
// An empty list or map is decoded as nil. The codec is derived from the types. If a field is added
// to a message, it is encoded without further work, and the shape in the first line changes. Two
// different builds thus refuse each other instead of misreading messages.
package helper
