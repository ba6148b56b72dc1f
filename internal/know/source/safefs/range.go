package safefs

import (
	"errors"
	"fmt"
	"io"
)

// ReadRange reads a part of a regular file, no more than the longest record.
func (r *Root) ReadRange(p string, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || length > TableLimit {
		return nil, fmt.Errorf("%d bytes at %d are no record", length, offset)
	}
	f, err := r.OpenFile(p)
	if err != nil {
		return nil, Explain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, Explain(err)
	}
	if err := r.Admit(info, CatalogLimit); err != nil {
		return nil, err
	}
	if offset+length > info.Size() {
		return nil, errors.New("the file has become shorter")
	}
	if seeker, ok := f.(io.Seeker); ok {
		_, err = seeker.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, offset)
	}
	if err != nil {
		return nil, Explain(err)
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, Explain(err)
	}
	return raw, nil
}
