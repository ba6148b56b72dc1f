package index

import (
	"crypto/sha256"
	"slices"

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
