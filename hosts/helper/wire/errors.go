package wire

import "errors"

// What can be wrong with a stream; every error of Reader but io.EOF and those of
// the underlying reader wraps one of them. None can be recovered from: close the
// channel. A stream that ends inside a frame gives io.ErrUnexpectedEOF.
var (
	ErrVersion  = errors.New("the other side is another build of dcs-tui")
	ErrFormat   = errors.New("not a frame")
	ErrGap      = errors.New("frames are missing or repeated")
	ErrWord     = errors.New("unknown kind of message")
	ErrChecksum = errors.New("frame damaged: wrong checksum")
	ErrTooLarge = errors.New("message too large")
)
