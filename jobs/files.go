package jobs

import (
	"fmt"
	"path/filepath"
)

// File is one of the at most three files of an attempt.
type File string

// The files of an attempt.
const (
	FileStatus File = "status" // its claim and, when it has ended, its sentinel: package attempts
	FileOut    File = "out"
	FileErr    File = "err"
)

// ShardDir returns the directory under attempts/ that holds a job's files:
// "000" for jobs 1 to 999, "001" from 1000 (job div 1000).
func ShardDir(id ID) string { return fmt.Sprintf("%03d", int(id)/1000) }

// AttemptFile returns the path of one file of an attempt below dir, the
// directory that contains attempts/: dir/attempts/000/17.2.status.
func AttemptFile(dir string, id AttemptID, f File) string {
	return filepath.Join(dir, "attempts", ShardDir(id.Job), id.String()+"."+string(f))
}
