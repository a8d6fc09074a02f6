// Package heap provides a binary heap of typed elements. container/heap needs five methods for each
// type of elements, and allocates memory for each of the million small elements of a queue.
package heap

// Heap is a binary heap. Its first element comes before all others.
type Heap[T Ordered[T]] []T

// Ordered is the constraint of the elements of a heap.
type Ordered[T any] interface {
	// Before reports whether the element precedes another.
	Before(T) bool
}

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].Before(s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
	*h = s
}

// Pop removes the first element of a heap that is not empty.
func (h *Heap[T]) Pop() T {
	s := *h
	first, last := s[0], len(s)-1
	s[0] = s[last]
	clear(s[last:])
	s = s[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && s[child+1].Before(s[child]) {
			child++
		}
		if !s[child].Before(s[i]) {
			break
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
	*h = s
	return first
}
