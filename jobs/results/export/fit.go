package export

// Where a table is wider than the terminal its columns are written in pages, one below
// the other, each with the columns that say what a row is.

// gap is between two columns.
const gap = 2

// few is how many digits a computed number keeps where there is no room for six.
const few = 3

// tableWidth is how wide columns are together.
func tableWidth(widths []int) int {
	total := -gap
	for _, w := range widths {
		total += w + gap
	}
	return total
}

// pages parts columns so that each part has at most room cells; the first stay columns are
// in each of them. room 0: there is one page.
func pages(widths []int, stay, room int) [][]int {
	var all [][]int
	used := 0
	for i, w := range widths {
		if len(all) == 0 || i >= stay && room > 0 && used+gap+w > room && len(all[len(all)-1]) > min(stay, i) {
			page := make([]int, min(stay, i))
			used = -gap
			for k := range page {
				page[k] = k
				used += widths[k] + gap
			}
			all = append(all, page)
		}
		all[len(all)-1] = append(all[len(all)-1], i)
		used += gap + w
	}
	return all
}
