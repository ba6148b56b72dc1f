package session

import (
	"bytes"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/store"
)

// partSize is what goes under one key of a large entry. It is below what the
// store takes, and a reader gets one of them at a time.
const partSize = 4 << 20

// MaxAppend is how many bytes the entries of one [Turn.Append] may have as they
// are written: what fits into one batch with the head and the list.
const MaxAppend = store.MaxBatch - 256<<10

// puts writes an entry, in parts where one value does not hold it: then its own
// key says how many there are and how long they are together. It gives what it
// wrote under that key.
func puts(b *store.Batch, key string, data []byte) []byte {
	if len(data) <= partSize {
		b.Put(key, data)
		return data
	}
	n := (len(data) + partSize - 1) / partSize
	list := fmt.Appendf(nil, "#%d %d", n, len(data))
	b.Put(key, list)
	for i := range n {
		b.Put(partKey(key, i), data[i*partSize:min((i+1)*partSize, len(data))])
	}
	return list
}

func partKey(key string, i int) string { return fmt.Sprintf("%s.%02d", key, i+1) }

// A partial is an entry that is being read. The zero value is ready.
type partial struct {
	key         string
	parts, size int
	data        []byte
}

// add takes the next item and gives an entry once it is whole.
func (p *partial) add(item store.Item) (store.Item, bool, error) {
	if p.key == "" {
		if !bytes.HasPrefix(item.Value, []byte("#")) {
			return item, true, nil
		}
		if _, err := fmt.Sscanf(string(item.Value), "#%d %d", &p.parts, &p.size); err != nil || p.parts < 1 || p.size > store.MaxBatch {
			return item, false, damaged(item.Key, fmt.Errorf("invalid list of parts"))
		}
		p.key = item.Key
		return item, false, nil
	}
	n := p.parts
	if i := len(p.data) / partSize; item.Key != partKey(p.key, i) {
		return item, false, damaged(p.key, fmt.Errorf("part %d of %d is not there", i+1, n))
	}
	p.data = append(p.data, item.Value...)
	if len(p.data) < p.size {
		return item, false, nil
	}
	whole := store.Item{Key: p.key, Value: p.data}
	if len(p.data) != p.size || !strings.HasSuffix(item.Key, fmt.Sprintf(".%02d", n)) {
		return item, false, damaged(p.key, fmt.Errorf("parts have %d bytes, want %d", len(p.data), p.size))
	}
	*p = partial{}
	return whole, true, nil
}

func tooLarge(id string, size int) error {
	return fault(capability.Invalid, "write to", id, fmt.Errorf("%w: the entries have %d bytes, the limit is %d", ErrTooLarge, size, MaxAppend),
		"hand large things over as files; nothing was written")
}
