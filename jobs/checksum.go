package jobs

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b as eight hexadecimal digits. All files of a run that hold
// checksums use this form.
func Checksum(b []byte) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli)))
}
