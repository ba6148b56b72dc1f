package index

import (
	"crypto/sha256"
	"slices"
	"unsafe"

	"ken/capability"
)

// EncodeBody returns what a kept file holds of a list, without its head and sum.
func EncodeBody(list []*capability.Capability) []byte {
	file := encode(Build(list), keyOf(list, nil))
	return file[len(cacheFormat)+sha256.Size : len(file)-sumSize]
}

// DecodeBody reads a kept file of a list that has this body and the right sum.
func DecodeBody(body []byte, list []*capability.Capability) (*Segment, bool) {
	key := keyOf(list, nil)
	file := slices.Concat([]byte(cacheFormat), key[:], body)
	return decode(appendSum(file), key, list, nil)
}

// within reports whether a list is a part of a piece of memory.
func within(list []uint32, first *byte, n int) bool {
	at, from := uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(first))
	return from <= at && at < from+uintptr(n)
}
