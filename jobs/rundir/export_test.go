package rundir

// CreateOn is Create on another disk.
func CreateOn(d Disk, base, name string, a Asked) (*Run, error) {
	a.Name = name
	return create(d, base, "", a)
}
