// Package coldsort sorts short lists and lists that are rarely sorted.
//
// The compiler makes a copy of package slices' sort for every type of struct,
// about 25 kB of the program each. All lists sorted here share one. It takes two to
// three times as long, so a list that is sorted for every message or call belongs
// to package slices.
package coldsort

import "sort"

// By is [slices.SortFunc].
func By[T any](list []T, compare func(a, b T) int) {
	sort.Slice(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Stable is [slices.SortStableFunc].
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
